"""What a job cannot do to its end, to others' files, and to what others find after it (SEC-2)."""
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

GROUP = 61999  # one of root's groups, which no user has
ENDS_S = 120  # what takes a few seconds, on a busy machine

# Holds a lease on a program (argv[1]), so that its exec waits, and stops the process that tries:
# the one that sleeps and descends from our daemon (argv[2]). One that looks for the job's directory
# has the same name and user, and so do those of tests that run at the same time. Ends after 60 s.
HOLDER = """
import fcntl, os, signal, sys, time
signal.alarm(60)
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)

def status(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.split(":\\t", 1) for line in file if ":\\t" in line)

def descends(pid, ancestor):
    while pid not in (ancestor, "0"):
        pid = status(pid)["PPid"].strip()
    return pid == ancestor

def waits(pid):
    one = status(pid)
    return (one["Name"].strip() == "acre-shim" and one["State"].startswith("S")
            and one["Uid"].split()[0] == str(os.getuid()) and descends(pid, sys.argv[2]))

while fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK:  # until an exec waits for it
    time.sleep(0.01)
mine = None
while mine is None:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if waits(name):
                os.kill(int(name), signal.SIGSTOP)
                mine = name
                break
        except OSError:
            pass
    time.sleep(0.01)
print(mine, flush=True)
signal.pause()
"""

SEGMENT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3], 8)))
"""

RING = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for number in (425, 426, 427):
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    print(errno.errorcode[ctypes.get_errno()])
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def processes_with(text):
    """Pids of those that have it in their command line."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as line:
                if text.encode() in line.read() and int(name) != os.getpid():
                    found.append(int(name))
        except OSError:
            pass
    return found


class TestCase(kit.TestCase):
    @classmethod
    def setUpClass(cls):
        kit.need_users()
        cls.groups = os.getgroups()
        os.setgroups([0, GROUP])  # the daemon inherits them
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        os.setgroups(cls.groups)

    def set_policy(self, **values):
        result = self.daemon.run("policy", "set", *(f"{key}={value}"
                                                    for key, value in values.items()))
        self.assertEqual(result.returncode, 0, result)

    def wait_log(self, user, number, text):
        self.eventually(lambda: text in user.acre("logs", number).stdout, what=f"{text} in the log")


class Endings(TestCase):
    def hold(self, *options):
        """A job of mallory's whose exec waits for a stopped process: number, and its pid."""
        path = os.path.join(self.mallory.home, f"held-{uuid.uuid4().hex}")
        shutil.copy("/bin/sleep", path)
        os.chown(path, self.mallory.uid, self.mallory.uid)
        holder = self.mallory.popen(kit.PYTHON, "-c", HOLDER, path, str(self.daemon.pid))
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), "held\n")
        number = self.mallory.submit(*options, "--", path, "600")
        said = holder.stdout.readline()
        if not said:  # it has ended, or was ended by its alarm
            self.fail(f"the exec that waits was not found within 60 s: {holder.stderr.read()} "
                      f"{self.daemon.job(number)}")
        stopped = int(said)
        self.addCleanup(lambda: is_alive(stopped) and os.kill(stopped, signal.SIGKILL))
        return number, stopped

    def test_a_lease_on_the_program_does_not_outlive_the_time_limit(self):
        number, stopped = self.hold("--time", "5s", "--grace", "1s")
        job = self.daemon.wait_for(number, "failed", timeout=ENDS_S)
        self.assertEqual(job["exit"]["kind"], "time limit", job)
        self.eventually(lambda: not is_alive(stopped), what="its end")

    def test_a_lease_on_the_program_does_not_outlive_a_cancel(self):
        number, stopped = self.hold("--grace", "1s")
        self.assertEqual(self.mallory.acre("cancel", number).returncode, 0)
        self.daemon.wait_for(number, "canceled", timeout=ENDS_S)
        self.eventually(lambda: not is_alive(stopped), what="its end")

    def test_what_is_not_yet_the_command_cannot_be_traced(self):
        """The command itself is its user's to trace."""
        with open("/proc/sys/fs/suid_dumpable", encoding="ascii") as value:
            if value.read().strip() == "1":
                self.skipTest("fs.suid_dumpable is 1: what changes its user can be traced")
        number, stopped = self.hold("--grace", "1s")
        self.assertEqual(os.stat(f"/proc/{stopped}/mem").st_uid, 0)
        self.assertEqual(self.daemon.run("cancel", number).returncode, 0)
        number = self.mallory.submit("--", "sh", "-c", "stat -c %u /proc/$$/mem")
        self.daemon.wait_for(number, "completed")
        self.assertEqual(self.mallory.acre("logs", number).stdout, f"{self.mallory.uid}\n")

    def test_nobody_asks_for_a_grace_above_the_policys(self):
        for run in (self.mallory.acre, self.daemon.run):
            result = run("submit", "--grace", "3650d", "--", "true")
            self.assertNotEqual(result.returncode, 0, result)
            self.assertIn("grace: 3650d is too long; accepted: at most 10m", result.stderr)
            self.assertIn("max_grace", result.stderr)

    def test_a_grace_accepted_earlier_is_cut_when_the_job_starts(self):
        number = self.mallory.submit("--hold", "--grace", "9m", "--", "sh", "-c",
                                     "trap '' TERM; echo ready; while :; do sleep 1; done")
        self.addCleanup(self.set_policy, max_grace="10m")
        self.addCleanup(self.daemon.run, "cancel", number)  # the second one kills
        self.set_policy(max_grace="500ms")
        self.assertEqual(self.mallory.acre("release", number).returncode, 0)
        self.wait_log(self.mallory, number, "ready")
        self.assertEqual(self.daemon.run("cancel", number).returncode, 0)
        self.daemon.wait_for(number, "canceled", timeout=ENDS_S)


class Reach(TestCase):
    def test_a_directory_of_roots_groups_is_not_entered(self):
        folder = tempfile.mkdtemp(prefix="acre-abuse-")
        self.addCleanup(shutil.rmtree, folder)
        inner = os.path.join(folder, "inner")
        os.mkdir(inner, 0o755)
        with open(os.path.join(inner, "secret"), "w", encoding="ascii") as out:
            out.write("treasure\n")
        os.chown(folder, 0, GROUP)
        os.chmod(folder, 0o750)
        number = self.mallory.submit("--directory", inner, "--", "cat", "secret")
        self.daemon.wait_for(number, "failed", "completed")
        self.assertNotIn("treasure", self.mallory.acre("logs", number).stdout)
        self.assertEqual(self.daemon.job(number)["state"], "failed")

    def test_a_directory_of_ones_own_in_tmp_is_entered(self):
        folder = tempfile.mkdtemp(prefix="acre-abuse-")
        self.addCleanup(shutil.rmtree, folder)
        os.chown(folder, self.mallory.uid, self.mallory.uid)
        for spelling in (folder, folder + "/", folder + "//.", folder.replace("/tmp/", "/tmp/.//")):
            said, job = self.look(spelling, "pwd")
            self.assertEqual((said, job["state"]), (folder + "\n", "completed"), job)

    def look(self, directory, command):
        """What a job of mallory's in this directory says, and how it ended."""
        number = self.mallory.submit("--directory", directory, "--", "sh", "-c", command)
        job = self.daemon.wait_for(number, "completed", "failed")
        return self.mallory.acre("logs", number).stdout, job

    def link(self, target):
        """A link of mallory's in /tmp."""
        path = os.path.join(tempfile.gettempdir(), f"acre-abuse-{uuid.uuid4().hex}")
        self.assertEqual(self.mallory.sh("ln", "-s", target, path).returncode, 0)
        self.addCleanup(os.unlink, path)
        return path

    def outside(self):
        """A file in the /tmp that jobs do not see."""
        fd, path = tempfile.mkstemp(prefix="acre-abuse-", dir="/tmp")
        os.close(fd)
        self.addCleanup(os.unlink, path)
        return path

    def test_no_descriptor_of_the_supervisors_leads_out(self):
        outside = self.outside()
        for fd in range(3, 20):
            said, job = self.look(f"/proc/self/fd/{fd}",
                                  f"ls -d ../../../../../../../..{outside}")
            self.assertEqual((said, job["state"]), ("", "failed"), f"descriptor {fd}")

    def test_no_link_to_the_root_leads_out(self):
        outside = self.outside()
        said, job = self.look(self.link("/"), f"ls -d .{outside}; ls -d usr")
        self.assertEqual((said, job["state"]), ("usr\n", "completed"), job)

    def test_tmp_by_another_spelling_is_the_private_one(self):
        outside = self.outside()
        for spelling in ("/tmp/", "/tmp/.", "/tmp//", self.link("/tmp"), self.link("/var/..//tmp")):
            said, job = self.look(spelling, f"ls -d {os.path.basename(outside)}; pwd -P")
            self.assertEqual((said, job["state"]), ("/tmp\n", "completed"), spelling)

    def test_a_link_in_tmp_is_followed(self):
        """To one's own files, in /tmp and elsewhere: people have links there."""
        folder = tempfile.mkdtemp(prefix="acre-abuse-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        os.mkdir(os.path.join(folder, "inner"))
        for name in (folder, os.path.join(folder, "inner")):
            os.chown(name, self.mallory.uid, self.mallory.uid)
        inner = os.path.join(folder, "inner")
        for directory, found in ((self.link(inner), inner), (self.link(inner) + "/", inner),
                                 (self.link(os.path.basename(folder)) + "/inner/.", inner),
                                 (self.link("/usr/bin"), "/usr/bin"),
                                 (self.link("/usr") + "//bin/", "/usr/bin")):
            said, job = self.look(directory, "pwd -P; ls -d $PWD/ > /dev/null")
            self.assertEqual((said, job["state"]), (found + "\n", "completed"), job)

    def run_segment(self, user, key, size, flags):
        number = user.submit("--", kit.PYTHON, "-c", SEGMENT, str(key), str(size), flags)
        self.daemon.wait_for(number, "completed")
        return int(user.acre("logs", number).stdout)

    def test_shared_memory_ends_with_its_job(self):
        key = 0x61637265
        self.assertGreaterEqual(self.run_segment(self.mallory, key, 1 << 20, "1666"), 0)
        libc = ctypes.CDLL(None, use_errno=True)
        left = libc.shmget(key, 0, 0)
        if left >= 0:
            libc.shmctl(left, 0, None)
        self.assertEqual(left, -1, "the segment is still there")

    def test_shared_memory_outside_is_out_of_reach(self):
        key = 0x61637266
        libc = ctypes.CDLL(None, use_errno=True)
        segment = libc.shmget(key, 4096, 0o1666)
        self.assertGreaterEqual(segment, 0)
        self.addCleanup(libc.shmctl, segment, 0, None)
        self.assertEqual(self.run_segment(self.mallory, key, 0, "0"), -1)

    def test_rings_that_go_round_the_filter_are_refused(self):
        number = self.mallory.submit("--", kit.PYTHON, "-c", RING)
        self.daemon.wait_for(number, "completed")
        self.assertEqual(self.mallory.acre("logs", number).stdout.split(), ["ENOSYS"] * 3)


class Supervisors(TestCase):
    """They are root's, and in no job's memory limit."""
    JOBS, MEMBERS = 6, 18

    def children(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as text:
            return text.read().split()

    def supervisors(self):
        """Those of this daemon's runs: children of its child."""
        return [pid for spawner in self.children(self.daemon.pid) for pid in self.children(spawner)]

    def all_run(self):
        return [len(self.children(pid)) for pid in self.supervisors()] == [self.MEMBERS] * self.JOBS

    def pss_kib(self, pid):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
            return next(int(line.split()[1]) for line in text if line.startswith("Pss:"))

    def test_a_large_request_is_not_kept_by_each(self):
        if self.daemon.is_sanitized:
            self.skipTest("AddressSanitizer keeps what was freed")
        statuses, answer = self.mallory.ask("POST", "/jobs", {
            "command": ["sleep", "600"], "gpus": 0, "cpus": 0.001, "nodes": self.MEMBERS,
            "memory": "64MiB", "array": f"1-{self.JOBS}",
            "environment": {f"A{i}": "y" * 30000 for i in range(28)}})
        self.assertEqual(list(statuses), [201], answer)
        self.eventually(self.all_run, what="the start of all members")
        self.eventually(lambda: max(map(self.pss_kib, self.supervisors())) < 2048, seconds=10,
                        what="that each has less than 2 MiB")
        self.assertEqual(
            self.mallory.acre("cancel", "--array", str(answer["array"])).returncode, 0)
        self.eventually(lambda: not self.supervisors(), what="their end")


class Processes(TestCase):
    """Where the policy says that processes are private."""

    def setUp(self):
        super().setUp()
        self.set_policy(private_processes="true")
        self.marker = f"acre-{uuid.uuid4().hex}"

    def sleeper(self):
        """A job with a process that left its session: its number, and the pids of both."""
        number = self.mallory.submit(
            "--grace", "1s", "--", "sh", "-c",
            f"setsid sh -c 'sleep 600; : {self.marker}' & echo ready; sleep 600; : {self.marker}")
        self.wait_log(self.mallory, number, "ready")
        def both():  # a child of theirs that is not sleep yet looks like them
            pids = processes_with(self.marker)
            return pids if len(pids) == 2 else None
        return number, self.eventually(both, what="two processes of the job")

    def test_others_processes_are_not_seen(self):
        victim = self.alice.popen("sh", "-c", f"echo ready; sleep 600; : {self.marker}",
                                  start_new_session=True)
        self.addCleanup(victim.communicate)
        self.addCleanup(os.killpg, victim.pid, signal.SIGKILL)
        self.assertEqual(victim.stdout.readline(), "ready\n")
        number = self.mallory.submit("--", "sh", "-c",
                                     "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'; echo $$")
        self.daemon.wait_for(number, "completed")
        seen = self.mallory.acre("logs", number).stdout
        self.assertNotIn(self.marker, seen)
        self.assertIn("cat", seen)
        self.assertLess(int(seen.split()[-1]), 10)

    def test_no_directory_shows_others_processes(self):
        link = os.path.join(tempfile.gettempdir(), f"acre-abuse-{uuid.uuid4().hex}")
        self.assertEqual(self.mallory.sh("ln", "-s", "/proc", link).returncode, 0)
        self.addCleanup(os.unlink, link)
        for directory in (link, *(f"/proc/self/fd/{fd}" for fd in range(3, 20))):
            number = self.mallory.submit("--directory", directory, "--", "sh", "-c",
                                         f"cat [0-9]*/comm; test ! -e {self.daemon.pid}/comm")
            job = self.daemon.wait_for(number, "completed", "failed")
            said = self.mallory.acre("logs", number).stdout
            self.assertLess(len(said.splitlines()), 10, f"{directory}: {said}")
            self.assertEqual(job["state"], "completed" if directory == link else "failed", job)

    def test_a_cancel_ends_all_of_them(self):
        number, _ = self.sleeper()
        self.assertEqual(self.mallory.acre("cancel", number).returncode, 0)
        self.daemon.wait_for(number, "canceled", timeout=ENDS_S)
        self.assertEqual(processes_with(self.marker), [])

    def test_they_survive_a_restart_of_the_daemon(self):
        number, before = self.sleeper()
        self.daemon.stop()
        self.daemon.start()
        self.daemon.wait_for(number, "running")
        self.assertEqual(processes_with(self.marker), before)
        self.assertEqual(self.mallory.acre("cancel", number).returncode, 0)
        self.daemon.wait_for(number, "canceled", timeout=ENDS_S)
        self.assertEqual(processes_with(self.marker), [])
