"""What the program gives away, and to whom: tokens, questions, and what reaches a terminal."""
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit
import program

INSTALLED = "/run/acre"  # where a daemon of this machine has its socket
TOKEN = "acre_1_" + "s" * 43
PORT = 10000  # where a daemon listens that was given no address

# Accepts connections as somebody might who waits for others' secrets: prints "ready", then what
# each of them sent first, as one line, and answers with argv[2]. argv[1] is a port or a path.
TRAP = """
import socket, sys
where = sys.argv[1]
if where.isdigit():
    listener = socket.create_server(("127.0.0.1", int(where)))
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen()
print("ready", listener.getsockname()[1] if where.isdigit() else "", flush=True)
while True:
    connection, _ = listener.accept()
    print(repr(connection.recv(65536)), flush=True)
    connection.sendall(sys.argv[2].encode())
    connection.close()
"""
REFUSAL = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Trap:
    """`with Trap(user, where) as trap: ...; trap.caught()`: what came there meanwhile."""

    def __init__(self, user, where, answer=REFUSAL):
        self.child = user.popen(kit.PYTHON, "-c", TRAP, str(where), answer)
        first = self.child.stdout.readline().split()
        assert first[:1] == ["ready"], self.child.stderr.read()
        self.port = first[1] if len(first) > 1 else None

    def __enter__(self):
        return self

    def caught(self):
        self.child.terminate()
        out, _ = self.child.communicate(timeout=kit.SECONDS)
        return out

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate()


class TestCase(kit.TestCase):
    @classmethod
    def setUpClass(cls):
        kit.need_network()
        super().setUpClass()

    def config(self, name, text, user=None, mode=0o600):
        """A file in alice's configuration, as `user`'s (hers)."""
        user = user or self.alice
        folder = os.path.join(self.alice.home, ".config", "acre")
        os.makedirs(folder, exist_ok=True)
        for path in (os.path.dirname(folder), folder):
            os.chown(path, self.alice.uid, self.alice.uid)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        os.chown(path, user.uid, user.uid)
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path


class Tokens(TestCase):
    def test_a_token_does_not_go_to_whoever_has_the_port(self):
        self.config("token", TOKEN + "\n")
        self.config("tokens", f"https://gpu.example.org {TOKEN}\n")
        for more in ({}, {"ACRE_TOKEN": TOKEN}):
            with self.subTest(more=more), Trap(self.mallory, PORT) as trap:
                result = self.alice.acre("queue", env={"ACRE_SERVER": "", **more})
                self.assertEqual(trap.caught(), "", "alice asked mallory")
                self.assertEqual(result.returncode, 9, result)
                self.assertIn("--server", result.stderr)

    def test_a_token_goes_to_the_server_it_is_kept_with(self):
        other = "acre_2_" + "t" * 43
        with Trap(self.mallory, 0) as trap:
            self.config("tokens", f"# mine\nhttp://127.0.0.1:1 {other}\n"
                                  f"http://127.0.0.1:{trap.port} {TOKEN}\n")
            self.alice.acre("queue", "--server", f"127.0.0.1:{trap.port}")
            caught = trap.caught()
            self.assertIn(TOKEN, caught)
            self.assertNotIn(other, caught)

    def test_a_redirect_does_not_carry_the_token_away(self):
        with Trap(self.mallory, 0) as away:
            answer = (f"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{away.port}/jobs\r\n"
                      "Content-Length: 0\r\nConnection: close\r\n\r\n")
            with Trap(self.mallory, 0, answer) as trap:
                result = self.alice.acre("queue", "--server", f"127.0.0.1:{trap.port}",
                                         env={"ACRE_TOKEN": TOKEN})
                self.assertIn(TOKEN, trap.caught())
            self.assertEqual(away.caught(), "")
            self.assertNotEqual(result.returncode, 0, result)

    def test_plain_http_beyond_this_machine_needs_a_word(self):
        for server in ("http://192.0.2.1:10000", "192.0.2.1:10000", "http://127.0.0.1.example:1",
                       "http://[2001:db8::1]:10000"):
            with self.subTest(server=server):
                result = self.alice.acre("queue", "--server", server, env={"ACRE_TOKEN": TOKEN})
                self.assertEqual(result.returncode, 2, result)
                self.assertIn("--insecure", result.stderr)
        for words, more in ((("--insecure",), {}), ((), {"ACRE_INSECURE": "1"})):
            result = self.alice.acre("queue", "--server", "http://192.0.2.1:10000", *words,
                                     env={"ACRE_TOKEN": TOKEN, **more})
            self.assertEqual(result.returncode, 9, result)  # no way there from here

    def test_a_host_cannot_be_hidden_in_a_url(self):
        for server in (f"http://127.0.0.1:{PORT}@192.0.2.1", "https://a@b", "http://127.0.0.1\\@b",
                       "http://127.0.0.1#@b", "http://", "http://127.0.0.1:x"):
            with self.subTest(server=server):
                result = self.alice.acre("queue", "--server", server, env={"ACRE_TOKEN": TOKEN})
                self.assertEqual(result.returncode, 2, result)
                self.assertIn("is not a server", result.stderr)

    def test_a_token_that_others_can_read_or_wrote_is_refused(self):
        cases = ((None, 0o644, "chmod 600"), (None, 0o640, "chmod 600"),
                 (self.mallory, 0o666, f"uid {self.mallory.uid}"))
        for name in ("token", "tokens"):
            for user, mode, says in cases:
                text = TOKEN if name == "token" else f"http://127.0.0.1:{PORT} {TOKEN}"
                with self.subTest(name=name, mode=mode), Trap(self.mallory, PORT) as trap:
                    path = self.config(name, text + "\n", user, mode)
                    result = self.alice.acre("queue", "--server", f"http://127.0.0.1:{PORT}")
                    self.assertEqual(trap.caught(), "")
                    self.assertEqual(result.returncode, 3, result)
                    self.assertIn(says, result.stderr)
                    self.assertIn(path, result.stderr)
            os.unlink(path)


class Sockets(TestCase):
    def hide_installed(self):
        """In our mount namespace: the socket of a daemon of this machine is asked before others."""
        if not os.path.isdir(INSTALLED):
            return
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            kit.call(libc.mount, b"tmpfs", INSTALLED.encode(), b"tmpfs", 0, None)
        except OSError as error:
            self.skipTest(f"a daemon of this machine has {INSTALLED}, which stays: {error}")
        self.addCleanup(libc.umount, INSTALLED.encode())

    def test_no_usual_place_is_anothers_socket(self):
        """Root with a user's HOME (sudo keeps it), a user with another's XDG_RUNTIME_DIR."""
        self.hide_installed()
        os.chmod(self.mallory.home, 0o755)
        self.addCleanup(os.chmod, self.mallory.home, 0o700)
        for variable, folder in (("HOME", ".local/state/acre"), ("XDG_RUNTIME_DIR", "acre")):
            place = os.path.join(self.mallory.home, folder)
            self.mallory.sh("mkdir", "-p", place)
            path = os.path.join(place, "acre.sock")
            with self.subTest(variable=variable), Trap(self.mallory, path) as trap:
                os.chmod(path, 0o777)
                root = program.run("queue", ACRE_SERVER=None, ACRE_TOKEN=None,
                                   **{"XDG_RUNTIME_DIR": None, variable: self.mallory.home})
                user = self.alice.acre("queue", env={"ACRE_SERVER": "",
                                                     variable: self.mallory.home})
                self.assertEqual(trap.caught(), "", "mallory was asked")
                for result in (root, user):
                    self.assertEqual(result.returncode, 9, result)
                    self.assertIn(f"{path} belongs to acre-mallory", result.stderr)


class Ports(TestCase):
    def test_a_daemon_does_not_start_without_the_port_it_should_have(self):
        with tempfile.TemporaryDirectory() as folder, Trap(self.mallory, PORT):
            path = os.path.join(folder, "acre.sock")
            child = subprocess.Popen(
                [program.ACRE, "serve", "--state", os.path.join(folder, "state"), "--socket", path,
                 "--sim", "examples/two-by-eight.acre"], cwd=program.SOURCE, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=program.environment())
            try:
                self.eventually(lambda: child.poll() is not None or os.path.exists(path))
                serves = child.poll() is None
                child.send_signal(signal.SIGTERM)
                out, err = child.communicate(timeout=kit.SECONDS)
            finally:
                child.kill()
                child.communicate()
            self.assertFalse(serves, "it serves without TCP, and mallory has its port")
            self.assertNotEqual(child.returncode, 0)
            for part in (f"127.0.0.1:{PORT}", "another program", "--listen", "--no-tcp"):
                self.assertIn(part, out + err)


class Terminals(TestCase):
    # Moves the cursor, sets the title, asks the terminal to type for us, writes the clipboard; as
    # ESC and as the one-byte and two-byte forms of the same.
    EVIL = (b"\x1b[2J\x1b]0;title\x07\x1b[6n\x1b]52;c;cm0=\x1b\\\x1bP$q\x1b\\\xc2\x9b2J\x9b2J"
            b"\x7f\x0e\x05\xe2\x80\xae\x1b[1;1H")
    GOOD = b"\x1b[1;31mred\x1b[0m\tab\bc 10%\r20%\n\xc3\xa9\n"

    def log(self, stream):
        """A job of mallory's that wrote both there."""
        number = self.mallory.submit("--", kit.PYTHON, "-c", "import os, sys;"
                                     "os.write(int(sys.argv[1]), bytes.fromhex(sys.argv[2]))",
                                     str(stream), (self.GOOD + self.EVIL).hex())
        self.daemon.wait_for(number, "completed")
        return number

    def assert_harmless(self, shown):
        rest = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        for c in rest:
            self.assertTrue(c in "\n\t\r\b" or (ord(c) >= 0x20 and not 0x7f <= ord(c) <= 0x9f
                                                 and c != "\u202e"), repr(shown))

    def test_a_log_cannot_command_the_terminal_of_who_reads_it(self):
        for stream, name in ((1, "stdout"), (2, "stderr")):
            number = self.log(stream)
            shown = [getattr(self.daemon.on_terminal("logs", *words, stream=name), name)
                     for words in ((number,), ("--follow", number))]
            shown.append(self.daemon.on_terminal("logs", "--stream", name, number).stdout)
            for text in shown:
                self.assert_harmless(text)
                self.assertIn("\x1b[1;31mred\x1b[0m\tab\bc 10%\r20%\né\n", text)
                self.assertIn("\\x1b[2J\\x1b]0;title\\x07", text)

    def test_nor_can_the_output_of_a_command_that_is_followed(self):
        result = self.daemon.on_terminal("run", "--", "printf", r"\033[2J\033]0;t\007")
        self.assertEqual(result.stdout, "\\x1b[2J\\x1b]0;t\\x07")

    def test_a_pipe_gets_the_bytes_and_so_does_a_terminal_that_is_asked_to(self):
        number = self.log(1)
        piped = subprocess.run([program.ACRE, "logs", "--stream", "stdout", number],
                               stdout=subprocess.PIPE, timeout=kit.SECONDS, check=True,
                               env=program.environment(ACRE_SERVER=self.daemon.socket)).stdout
        self.assertEqual(piped, self.GOOD + self.EVIL)
        number = self.mallory.submit("--", "printf", r"\033[2J\033]0;t\007")
        self.daemon.wait_for(number, "completed")
        self.assertEqual(self.daemon.on_terminal("logs", "--raw", number).stdout,
                         "\x1b[2J\x1b]0;t\x07")

    def test_nor_can_a_command_or_a_note(self):
        number = self.mallory.submit("--", "true", "\x1b[2J\u009b2J\x7f\u202e")
        self.daemon.wait_for(number, "completed")
        self.mallory.acre("token", "create", "--note", "\x1b[2J\u009b2J\x7f")
        for words in (("show", number), ("show", "--json", number), ("queue", "--all"),
                      ("queue", "--all", "--json"), ("token",), ("token", "--json"), ("audit",),
                      ("audit", "--json")):
            with self.subTest(words=words):
                self.assert_harmless(self.daemon.on_terminal(*words).stdout)
