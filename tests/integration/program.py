"""The built program as its users see it: run in a pipe, or on a terminal of a given width."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ACRE = os.environ.get("ACRE_PROGRAM", os.path.join(SOURCE, "build", "acre"))
TIMEOUT_S = 240
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# Programs run in SOURCE.
NODES = "examples/small-nodes.csv"
TASKS = "examples/small-tasks.csv"
CLUSTER = "examples/two-nodes.acre"


def environment(**changes):
    """Ours without what changes the output, and with `changes`; None takes a variable away."""
    result = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    result["TERM"] = "xterm"
    for name, value in changes.items():
        result.pop(name, None)
        if value is not None:
            result[name] = value
    return result


def run(*arguments, **options):
    """Run `acre arguments` with pipes; what it wrote is in .stdout and .stderr."""
    return subprocess.run([ACRE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, cwd=SOURCE,
                          env=environment(**options))


def read_all(fd):
    """Everything until the other end is gone (a terminal says so with EIO)."""
    pieces = []
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        if not piece:
            return b"".join(pieces).decode().replace("\r\n", "\n")
        pieces.append(piece)


def on_terminal(*arguments, columns=80, rows=50, stream="stdout", **options):
    """Run with `stream` on a terminal and the other one in a pipe; as run(), but what came to the
    terminal is as it was sent, escape sequences included."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        raise unittest.SkipTest(f"no pseudo-terminals here: {error}")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    other = "stderr" if stream == "stdout" else "stdout"
    child = subprocess.Popen([ACRE, *arguments], stdin=subprocess.DEVNULL, cwd=SOURCE,
                             env=environment(**options),
                             **{stream: theirs, other: subprocess.PIPE})
    os.close(theirs)
    try:
        shown = read_all(ours)
        piped = read_all(getattr(child, other).fileno())
        status = child.wait(TIMEOUT_S)
    finally:
        child.kill()
        child.wait()
        getattr(child, other).close()
        os.close(ours)
    return subprocess.CompletedProcess(child.args, status, **{stream: shown, other: piped})


class TestCase(unittest.TestCase):
    """With an assertion about how a program ended."""

    maxDiff = None

    def assert_ended(self, result, status=0, stderr=""):
        """`stderr` is a part of what must be there; "" means that nothing may be."""
        self.assertEqual((result.returncode, result.stderr if stderr == "" else ""), (status, ""),
                         result)
        self.assertIn(stderr, result.stderr)
