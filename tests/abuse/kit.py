"""A real root daemon and real unprivileged users, who try to get more than is theirs.

The users exist only here: the tests run in a mount namespace of their own, where /etc/passwd and
/etc/group have two more lines. Nothing of the machine is changed. Without root the tests are
skipped, with the reason.

    class Escape(kit.TestCase):
        def test_a_user_cannot_read_the_state(self):
            result = self.mallory.sh("cat", self.daemon.state + "/acre.db")
            self.assertNotEqual(result.returncode, 0)
"""
import atexit
import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import api
import program

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
USERS = {"acre-alice": 61001, "acre-mallory": 61002}
SECONDS = 120  # for what never happens: a busy machine may be slow
# One that every user may run: ours may be in root's home.
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
GENEROUS_MS = 250  # for a p99 during a flood, on a machine that does other things too

ATTEMPTS = 3  # at a figure that a busy machine can spoil, and what is measured cannot mend
IS_LONG = bool(os.environ.get("ACRE_TEST_LONG"))  # `make test-long`: floods in full

_network = False  # whether we have one of our own
_room = None  # the directory with the users' homes, once they exist; or why they cannot


def call(function, *arguments):
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def add_users():
    """Enter a mount namespace in which the users exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.unshare, CLONE_NEWNS)
    call(libc.mount, None, b"/", None, MS_REC | MS_PRIVATE, None)
    room = tempfile.mkdtemp(prefix="acre-abuse-")
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    os.chmod(room, 0o711)
    for name, line in (("passwd", "{0}:x:{1}:{1}::{2}/{0}:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
        copy = os.path.join(room, name)
        shutil.copy(f"/etc/{name}", copy)
        with open(copy, "a", encoding="utf-8") as out:
            for user, uid in USERS.items():
                out.write(line.format(user, uid, room))
        os.chmod(copy, 0o644)
        call(libc.mount, copy.encode(), f"/etc/{name}".encode(), None, MS_BIND, None)
    for user, uid in USERS.items():
        home = os.path.join(room, user)
        os.mkdir(home, 0o700)
        os.chown(home, uid, uid)
    return room


def need_users():
    global _room
    if _room is None:
        if os.getuid() != 0:
            _room = unittest.SkipTest("needs root: a root daemon, and processes of other users")
        else:
            try:
                _room = add_users()
            except OSError as error:
                _room = unittest.SkipTest(f"no mount namespace of our own: {error}")
    if isinstance(_room, unittest.SkipTest):
        raise _room
    return _room


def need_network():
    """Enter a network of our own: all its ports are free, and nothing leads out of it."""
    global _network
    need_users()
    if _network:
        return
    try:
        call(ctypes.CDLL(None, use_errno=True).unshare, CLONE_NEWNET)
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    except OSError as error:
        raise unittest.SkipTest(f"no network namespace of our own: {error}")
    _network = True


class User:
    """One unprivileged account: runs programs as itself, and asks the daemon over its socket."""

    def __init__(self, name, server):
        self.name, self.uid = name, USERS[name]
        self.home = os.path.join(need_users(), name)
        self.server = server

    def popen(self, *words, **options):
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home,
                       "ACRE_SERVER": self.server.socket, "TERM": "xterm",
                       **options.pop("env", {})}
        return subprocess.Popen(words, user=self.uid, group=self.uid, extra_groups=[],
                                cwd=options.pop("cwd", self.home), env=environment,
                                stdin=options.pop("stdin", subprocess.DEVNULL), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def sh(self, *words, **options):
        """A program as this user; what it wrote is in .stdout and .stderr."""
        with self.popen(*words, **options) as child:
            try:
                out, err = child.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        return subprocess.CompletedProcess(words, child.returncode, out, err)

    def acre(self, *words, **options):
        return self.sh(self.server.program, *words, **options)

    def submit(self, *words, **options):
        """The number of a new job, as text."""
        result = self.acre("submit", "--quiet", *words, **options)
        assert result.returncode == 0, result
        return result.stdout.strip()

    def python(self, text, *words, **options):
        return self.sh(PYTHON, "-c", text, *words, **options)

    def run(self, function):
        """What `function()` returns (as JSON) in a child of ours that is this user."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
                text, status = json.dumps(function()), 0
            except Exception:
                text = traceback.format_exc()
            finally:
                with os.fdopen(writer, "w", encoding="utf-8") as out:
                    out.write(text)
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as answer:
            text = answer.read()
        _, status = os.waitpid(child, 0)
        assert status == 0, f"{self.name} could not: {text}"
        return json.loads(text)

    def ask(self, method, path, body=None, count=1, at_once=1):
        """Requests of this user's, on so many connections. `body` is a value, or a function of
        the request's number, as `path` may be. Returns how many got which status, and the last
        answer."""
        def ask_some(first):
            connection = api.UnixConnection(self.server.socket)
            statuses, last = {}, b"null"
            for i in range(first, count, at_once):
                value = body(i) if callable(body) else body
                connection.request(method, path(i) if callable(path) else path,
                                   None if value is None else json.dumps(value))
                response = connection.getresponse()
                last = response.read()
                statuses[response.status] = statuses.get(response.status, 0) + 1
            connection.close()
            return list(statuses.items()), json.loads(last)

        def ask_all():
            with ThreadPoolExecutor(at_once) as threads:
                return list(threads.map(ask_some, range(at_once)))
        statuses = {}
        for counts, last in self.run(ask_all):
            for status, number in counts:
                statuses[status] = statuses.get(status, 0) + number
        return statuses, last


def loading(user, *words):
    """load.py as this user, in the background: ended with the block, if it has not ended by itself.
    """
    with open(os.path.join(HERE, "load.py"), encoding="utf-8") as text:
        return Background(user.popen(PYTHON, "-c", text.read(), *map(str, words),
                                     stdin=subprocess.PIPE))


def at_best(measure, most_ms):
    """All that was measured until one p99 was below, ATTEMPTS at most: a flood that harms does so
    each time."""
    results = [measure()]
    while results[-1]["p99"] >= most_ms and len(results) < ATTEMPTS:
        results.append(measure())
    return results


def loaded(user, *words):
    """What load.py says when it runs to its end as this user."""
    with loading(user, *words) as child:
        return child.result()


class Background:
    def __init__(self, child):
        self.child = child

    def line(self):
        """The next thing it says."""
        text = self.child.stdout.readline()
        assert text, self.child.stderr.read()
        return json.loads(text)

    def result(self):
        """The last thing it says, after the end of its input."""
        self.child.stdin.close()
        return self.line()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            stream.close()


class Daemon(api.Daemon):
    """As installed: root's, jobs as their users. Its files are where users can reach them."""

    def __init__(self, *options, **changes):
        super().__init__(*options, **changes)
        os.chmod(self.folder, 0o711)
        self.state = os.path.join(self.folder, "state")
        # Users must be able to run it, wherever the build is.
        self.program = os.path.join(self.folder, "acre")
        shutil.copy(program.ACRE, self.program)
        with open(program.ACRE, "rb") as binary:
            self.is_sanitized = b"__asan_init" in binary.read()
        os.chmod(self.program, 0o755)

    @property
    def pid(self):
        return self.child.pid

    def rss_mib(self):
        """0 under AddressSanitizer, which keeps what was freed."""
        if self.is_sanitized:
            return 0
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def disk_mib(self):
        """Of everything it keeps."""
        total = 0
        for folder, _, names in os.walk(self.state):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
        return total / (1 << 20)


class TestCase(api.TestCase):
    kind = Daemon

    @classmethod
    def setUpClass(cls):
        need_users()
        super().setUpClass()
        cls.alice = User("acre-alice", cls.daemon)
        cls.mallory = User("acre-mallory", cls.daemon)

    def eventually(self, condition, seconds=SECONDS, what="it"):
        """Wait until `condition()` is true; returns its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            self.assertLess(time.monotonic(), deadline, f"{what} did not happen in {seconds} s")
            time.sleep(0.02)

    def assert_runs(self, user, seconds=SECONDS):
        """The daemon still serves this user: a job from submission to its end."""
        number = user.submit("--", "true")
        self.daemon.wait_for(number, "completed", timeout=seconds)
