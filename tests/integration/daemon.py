"""A real daemon for a test: its own state directory, simulated devices, stopped by pid."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import program

START_S = 120  # for what never happens: a busy machine may be slow
NODES = "examples/two-by-eight.acre"


class Daemon:
    """`with Daemon() as daemon: daemon.run("queue")`."""

    def __init__(self, *options, sim=NODES):
        self.folder = tempfile.mkdtemp(prefix="acre-test-")
        self.socket = os.path.join(self.folder, "acre.sock")
        self.options = ["--state", os.path.join(self.folder, "state"), "--socket", self.socket,
                        "--sim", sim, *options]
        if "--listen" not in options:
            self.options += ["--listen", "none"]
        if os.getuid() == 0:
            self.options += ["--allow-root"]  # or nothing would start
        # appending: reading here moves the place in the file that the daemon writes at
        self.log = open(os.path.join(self.folder, "serve.log"), "a+", encoding="utf-8")
        self.child = None

    def start(self):
        self.child = subprocess.Popen([program.ACRE, "serve", *self.options], cwd=program.SOURCE,
                                      stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      env=program.environment(ACRE_SERVER=None, ACRE_TOKEN=None))
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.child.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(self.socket)
                    return self
                except OSError:
                    time.sleep(0.02)
        raise AssertionError(f"the daemon did not start: {self.said()}")

    def stop(self):
        """Ask it to end; returns its exit status."""
        if self.child is None:
            return None
        self.child.send_signal(signal.SIGTERM)
        try:
            status = self.child.wait(START_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            status = self.child.wait()
        self.child = None
        return status

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self.start()

    def end_jobs(self):
        """A daemon that stops leaves its jobs alone, but nobody comes back for those of a test."""
        deadline = time.monotonic() + START_S
        while self.child is not None and self.child.poll() is None:
            jobs = self.run("queue", "--quiet").stdout.split()
            if not jobs or time.monotonic() > deadline:
                return
            self.run("cancel", "--quiet", *jobs)
            time.sleep(0.05)

    def __exit__(self, *_):
        self.end_jobs()
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *arguments, **changes):
        return program.run(*arguments, **{"ACRE_SERVER": self.socket, "ACRE_TOKEN": None,
                                          **changes})

    def on_terminal(self, *arguments, **options):
        return program.on_terminal(*arguments, ACRE_SERVER=self.socket, ACRE_TOKEN=None, **options)

    def json(self, *arguments):
        """The answer of a command that must succeed."""
        words = 2 if arguments[0] in ("reserve", "policy", "quota", "token") else 1
        result = self.run(*arguments[:words], "--json", *arguments[words:])
        assert result.returncode == 0, result
        return json.loads(result.stdout)

    def submit(self, *arguments):
        """The id of a new job."""
        result = self.run("submit", "--quiet", *arguments)
        assert result.returncode == 0, result
        return result.stdout.strip()

    def job(self, number):
        return self.json("show", number)["job"]

    def wait_for(self, number, *states, timeout=START_S):
        """Wait until the job is in one of the states; returns it."""
        deadline = time.monotonic() + timeout
        while True:
            job = self.job(number)
            if job["state"] in states:
                return job
            assert time.monotonic() < deadline, f"job {number} stays {job}"
            time.sleep(0.05)


class TestCase(program.TestCase):
    """One daemon for all tests of the class."""

    kind = Daemon
    options = ()
    sim = NODES

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.kind(*cls.options, sim=cls.sim)
        try:
            cls.daemon.start()
        except BaseException:
            cls.daemon.__exit__()
            raise

    @classmethod
    def tearDownClass(cls):
        try:
            cls.daemon.end_jobs()
            status = cls.daemon.stop()
            assert status == 0, f"the daemon ended with {status}: {cls.daemon.said()[-3000:]}"
        finally:
            cls.daemon.__exit__()
