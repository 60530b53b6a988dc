"""Shares of a GPU by MPS (SEC-2): root's control daemon and its directories stay root's.

The GPU and the vendor's program are doubles (tests/support), seen in our mount namespace alone; the
daemon, the users, the directories and the processes are real."""
import ctypes
import os
import re
import shutil
import signal
import stat
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "gpu")]
import kit
import mps_abuse
import program

UUID = "GPU-00000000-1111-2222-3333-444444444444"  # as nvml_double names its first
PIPE, LOG = f"{mps_abuse.HOME}/{UUID}", f"{mps_abuse.HOME}/{UUID}.log"
SUPPORT = os.path.join(os.path.dirname(os.path.abspath(program.ACRE)), "tests", "support")
NODES = ("null", "zero", "full", "random", "urandom", "tty")
SHARE = ("--gpus", "0.3", "--isolation", "mps")


def mount(source, target, kind=None, flags=0):
    libc = ctypes.CDLL(None, use_errno=True)
    kit.call(libc.mount, source.encode(), target.encode(), kind and kind.encode(), flags, None)


def add_gpu(room):
    """One NVIDIA GPU, as far as acre looks; and a /run of our own."""
    folders = {name: os.path.join(room, name) for name in ("dev", "driver", "bin", "lib")}
    for folder in folders.values():
        os.mkdir(folder)
    gpu = os.path.join(folders["driver"], "nvidia", "gpus", "0000:10:00.0")
    os.makedirs(gpu)
    with open(os.path.join(gpu, "information"), "w", encoding="ascii") as out:
        out.write(f"GPU UUID: \t {UUID}\nDevice Minor: \t 0\n")
    mount("tmpfs", folders["dev"], "tmpfs")
    for name in NODES:
        os.mknod(f"{folders['dev']}/{name}", stat.S_IFCHR, os.stat(f"/dev/{name}").st_rdev)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        os.mknod(f"{folders['dev']}/{name}", stat.S_IFCHR, os.stat("/dev/null").st_rdev)
    for name in os.listdir(folders["dev"]):
        os.chmod(f"{folders['dev']}/{name}", 0o666)
    os.symlink("/proc/self/fd", f"{folders['dev']}/fd")
    shutil.copy(f"{SUPPORT}/libnvml_double.so", f"{folders['lib']}/libnvidia-ml.so.1")
    shutil.copy(f"{SUPPORT}/mps_double", f"{folders['bin']}/nvidia-cuda-mps-control")
    mount(folders["driver"], "/proc/driver", flags=kit.MS_BIND)
    mount("tmpfs", "/run", "tmpfs")
    mount(folders["dev"], "/dev", flags=kit.MS_BIND)
    os.environ["LD_LIBRARY_PATH"] = folders["lib"]
    os.environ["PATH"] = folders["bin"] + ":" + os.environ["PATH"]
    os.environ["ACRE_NVML_DOUBLE"] = "gpus 1"


class Daemon(kit.Daemon):
    """With the GPU it finds, not a simulated one."""

    def __init__(self, *options, **changes):
        super().__init__(*options, **changes)
        at = self.options.index("--sim")
        del self.options[at:at + 2]


class Mps(kit.TestCase):
    kind = Daemon

    @classmethod
    def setUpClass(cls):
        room = kit.need_users()
        for name in ("driver", "bin", "lib"):
            cls.addClassCleanup(shutil.rmtree, os.path.join(room, name), ignore_errors=True)
        try:
            add_gpu(room)
        except OSError as error:
            raise unittest.SkipTest(f"no GPU can be feigned here: {error}")
        super().setUpClass()

    def setUp(self):
        """As earlier versions left the directories: open to all."""
        self.secret = os.path.join(self.daemon.folder, "secret")
        self.made = os.path.join(self.daemon.folder, "made")
        with open(self.secret, "w", encoding="ascii") as out:
            out.write(mps_abuse.SECRET)
        for folder in (PIPE, LOG):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            os.chmod(folder, 0o1777)

    def start_shares(self):
        """A job of each user, running."""
        jobs = [user.submit(*SHARE, "--", "sh", "-c", "env; exec sleep 600")
                for user in (self.alice, self.mallory)]
        for job in jobs:
            self.addCleanup(self.daemon.run, "cancel", job)  # where a check fails
            self.daemon.wait_for(job, "running")
        return jobs

    def end(self, user, job):
        self.assertEqual(user.acre("cancel", job).returncode, 0)
        self.daemon.wait_for(job, "canceled")

    def as_mallory(self, function, *words):
        return mps_abuse.as_user(self.mallory.uid, function, *words)

    def assert_untouched(self):
        """Nothing he tries works, and nothing of root's has changed."""
        seen = self.as_mallory(mps_abuse.meddle, PIPE, LOG, self.secret)
        self.assertEqual([what for what, result in seen.items() if result == "worked"], [])
        with open(self.secret, encoding="ascii") as text:
            self.assertEqual(text.read(), mps_abuse.SECRET)
        self.assertFalse(os.path.lexists(self.made))

    def wait_down(self):
        self.eventually(lambda: not mps_abuse.roots(), what="the end of root's MPS")

    def test_links_of_users_are_not_followed(self):
        def plant():
            os.makedirs(PIPE + "/folder/below")
            os.symlink(self.made, PIPE + "/control_lock")
            os.symlink(self.secret, f"{PIPE}/{mps_abuse.PID_FILE}")
            for name in ("control.log", "server.log"):
                os.symlink(self.secret, f"{LOG}/{name}")
            return "planted"
        self.assertEqual(self.as_mallory(plant), "planted")
        planter = mps_abuse.Planter(self.mallory.uid, PIPE, LOG, self.secret, self.made)
        try:
            hers, his = self.start_shares()
            self.assert_untouched()
            log = self.mallory.acre("logs", his).stdout
            self.assertTrue(re.search(f"^CUDA_MPS_PIPE_DIRECTORY={PIPE}$", log, re.M), log)
            self.assertNotIn("CUDA_MPS_LOG_DIRECTORY", log)
            self.end(self.alice, hers)
            self.end(self.mallory, his)
            self.wait_down()
            self.assert_untouched()
        finally:
            planter.stop()

    def test_access_ends_with_the_last_share(self):
        hers, his = self.start_shares()
        self.assertEqual(self.as_mallory(mps_abuse.try_connect, PIPE + "/control"), "worked")
        self.end(self.mallory, his)
        self.eventually(lambda: self.as_mallory(mps_abuse.try_connect, PIPE + "/control")
                        == "EACCES", what="the end of his access")
        self.assertEqual(mps_abuse.as_user(self.alice.uid, mps_abuse.try_connect,
                                           PIPE + "/control"), "worked")
        self.end(self.alice, hers)
        self.wait_down()
        for folder in (PIPE, LOG):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)

    def test_a_users_daemon_is_not_taken_for_ours(self):
        self.as_mallory(mps_abuse.control, PIPE, LOG, "-d")
        self.eventually(lambda: os.path.exists(f"{PIPE}/{mps_abuse.PID_FILE}"), what="his daemon")
        connection, (fake, owner, _) = mps_abuse.connect(PIPE + "/control")
        connection.close()
        self.addCleanup(mps_abuse.attempt, os.kill, fake, signal.SIGKILL)
        self.assertEqual(owner, self.mallory.uid)
        hers, his = self.start_shares()
        connection, (ours, owner, _) = mps_abuse.connect(PIPE + "/control")
        connection.close()
        self.assertEqual(owner, 0)
        self.assertNotEqual(ours, fake)
        self.end(self.alice, hers)
        self.end(self.mallory, his)
        self.wait_down()
        self.assertIn(fake, [row["pid"] for row in mps_abuse.processes()])  # not ours to end
