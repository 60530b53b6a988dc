"""Nobody keeps the others out (SEC-1): connections and followers of one user or address are
limited, the socket and root have places that nobody else gets, and strangers make room."""
import json
import os
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

CONNECTIONS = 5000 if kit.IS_LONG else 1500  # each way many times what a user may have
SUBMISSIONS = 200
STRANGERS_S = 9  # are cut after 5 s, others' requests after 10 s
CAP = 200  # max_connections by default
FOLLOWERS = 128  # max_followers by default
OPEN_FILES = 2_004_096  # for the most connections, 1,000,000
LISTED = 80  # long answers at once, of which so many may wait to be read
HALF = b"POST /jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"

# Bodies of which the last byte does not come, kept until standard input ends.
BODIES = """
import socket, sys
held = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    one.connect(sys.argv[1])
    try:
        one.sendall(b"POST /jobs HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 1048576\\r\\n\\r\\n"
                    + b"x" * 1048575)
    except OSError:
        pass  # cut in the middle of it
    held.append(one)
print(len(held), flush=True)
sys.stdin.read()
"""

# As many streams of PATH as there may be, kept open until standard input ends.
FOLLOW = """
import json, socket, sys
path, count, held, refusals = sys.argv[2], int(sys.argv[3]), [], []
for _ in range(count):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(20)
    one.connect(sys.argv[1])
    one.sendall(f"GET {path} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n".encode())
    answer = one.recv(4096).decode()
    (held if answer.startswith("HTTP/1.1 200") else refusals).append((one, answer))
    if refusals:
        refusals[-1][0].close()
print(json.dumps({"held": len(held), "refusals": [answer for _, answer in refusals]}), flush=True)
sys.stdin.read()
"""

# One long list on each of many connections (with a token: over TCP); the answers are read when
# standard input ends: how many came, and after how many ms the last one.
LISTS = """
import socket, sys, time
asked = []
token = sys.argv[3]
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_INET if token else socket.AF_UNIX)
    one.settimeout(60)
    one.connect(("127.0.0.1", int(sys.argv[1])) if token else sys.argv[1])
    asked.append(one)
began = time.monotonic()
for one in asked:
    one.sendall(("GET /jobs?limit=1000 HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n"
                 + (f"Authorization: Bearer {token}\\r\\n" if token else "") + "\\r\\n").encode())
print(len(asked), flush=True)
sys.stdin.read()
answered = 0
for one in asked:
    answered += one.recv(12) == b"HTTP/1.1 200"
    while one.recv(1 << 20):
        pass
print([answered, (time.monotonic() - began) * 1000], flush=True)
"""

# The longest that a small request takes until standard input ends, in ms.
WORST = """
import select, socket, sys, time
one = socket.socket(socket.AF_UNIX)
one.settimeout(60)
one.connect(sys.argv[1])
worst, asked = 0, 0
while not select.select([sys.stdin], [], [], 0.002)[0]:
    began = time.monotonic()
    one.sendall(b"GET /version HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    one.recv(4096)
    worst, asked = max(worst, time.monotonic() - began), asked + 1
    if asked == 1:
        print(asked, flush=True)
print(worst * 1000, flush=True)
"""


class Connections(kit.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = str(cls.daemon.port)
        kit.loaded(cls.alice, "submit", cls.daemon.socket, 20)  # what every first time costs
        cls.idle = kit.loaded(cls.alice, "submit", cls.daemon.socket, SUBMISSIONS)

    def root_waits_ms(self):
        began = time.monotonic()
        self.assertEqual(self.admin.get("/stats").status, 200)
        return (time.monotonic() - began) * 1000

    def assert_served(self, what):
        """Alice and root work as if nothing was; numbers for the record."""
        root_ms = min(self.root_waits_ms() for _ in range(5))
        most_ms = max(3 * self.idle["p99"], kit.GENEROUS_MS)
        busy = kit.at_best(lambda: kit.loaded(self.alice, "submit", self.daemon.socket,
                                              SUBMISSIONS), most_ms)[-1]
        counts = self.admin.get("/stats").json["http"]
        print(f"# {what}: alice's submissions, ms: idle {self.idle}, now {busy}; root waits "
              f"{root_ms:.1f} ms; {self.daemon.rss_mib():.0f} MiB; {counts}", flush=True)
        self.assertLess(busy["p99"], most_ms)
        self.assertLess(root_ms, kit.GENEROUS_MS)
        return counts

    def test_one_address_keeps_nobody_out(self):
        """Not even those with a token at the same address."""
        carol = self.daemon.user("carol")
        with kit.loading(self.mallory, "hold", self.port, CONNECTIONS) as mallory:
            mallory.line()
            for _ in range(20):
                self.assertEqual(carol.get("/jobs?limit=1").status, 200)
            counts = self.assert_served(f"{CONNECTIONS} connections over TCP")
            self.assertLessEqual(counts["connections"], CAP + 10)
            said = mallory.result()
            self.assertLessEqual(said["held"], CAP)
            self.assertIn(f"of at most {CAP} (max_connections in the policy)", said["refusal"])

    def test_many_loopback_addresses_keep_nobody_out(self):
        """They are one, and who has a token gets in all the same."""
        carol = self.daemon.user("carol")
        sources = [f"127.0.1.{i}" for i in range(1, 51)]
        with kit.loading(self.mallory, "hold", self.port, CONNECTIONS, *sources) as mallory:
            mallory.line()
            counts = self.assert_served(f"{CONNECTIONS} connections from 50 addresses")
            self.assertLessEqual(counts["connections"], CAP + 10)
            for _ in range(20):
                self.assertEqual(carol.get("/jobs?limit=1").status, 200)

    def test_a_user_with_a_token_keeps_nobody_out(self):
        """Connections that have shown a token are counted by its user, whatever the address."""
        asked = ("GET /jobs?limit=1 HTTP/1.1\r\nHost: a\r\n"
                 f"Authorization: Bearer {self.daemon.user('dave').token}\r\n\r\n").encode()
        held, refusal = [], ""
        try:
            for i in range(CAP + 50):
                held.append(socket.create_connection(("127.0.0.1", int(self.port)), kit.SECONDS,
                                                     source_address=(f"127.0.3.{i % 20 + 1}", 0)))
                held[-1].sendall(asked)
                answer = held[-1].recv(4096).decode()
                if not answer.startswith("HTTP/1.1 200"):
                    refusal = refusal or answer
                    held.pop().close()
            self.assertEqual(len(held), CAP)
            self.assertTrue(refusal.startswith("HTTP/1.1 429"), refusal)
            self.assertIn(f"user dave has {CAP} open, of at most {CAP} (max_connections",
                          refusal)
            self.assertEqual(self.daemon.user("carol").get("/jobs?limit=1").status, 200)
            held[0].sendall(asked)
            self.assertTrue(held[0].recv(4096).startswith(b"HTTP/1.1 200"))
        finally:
            for one in held:
                one.close()

    def test_a_user_on_the_socket_keeps_nobody_out(self):
        with kit.loading(self.mallory, "hold", self.daemon.socket, CONNECTIONS) as mallory:
            mallory.line()
            refused = self.mallory.acre("queue")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(f"of at most {CAP} (max_connections in the policy)", refused.stderr)
            self.assert_served(f"{CONNECTIONS} connections on the socket")
            said = mallory.result()
            self.assertLessEqual(said["held"], CAP)
            self.assertIn(f"unix:{self.mallory.uid} has {CAP} open", said["refusal"])

    def test_the_limit_is_the_policys(self):
        held = []
        try:
            self.assertEqual(self.admin.ask("PUT", "/policy", {"max_connections": 5}).status, 200)
            with kit.loading(self.mallory, "hold", self.daemon.socket, 50) as mallory:
                mallory.line()
                self.assertLessEqual(mallory.result()["held"], 5)
            for _ in range(50):  # root is not held to it
                held.append(kit.api.UnixConnection(self.daemon.socket))
                held[-1].request("GET", "/version")
                self.assertEqual(held[-1].getresponse().status, 200)
        finally:
            for one in held:
                one.close()
            self.admin.ask("PUT", "/policy", {"max_connections": CAP})

    def test_a_request_across_two_reads_is_whole(self):
        """What was read and not used yet is not written over by what is read next."""
        read = 65536  # bytes at once
        for ending in (b"\r\n\r\n", b"\r\n\r\n" + b"q" * (read - 64) + b"A: " + b"b" * 60 + b"\r"):
            start = b"GET /version HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 64
            first = b"POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: %05d\r\n\r\n"
            body = read - len(start) - len(first % 0)
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(self.daemon.socket)
                one.settimeout(kit.SECONDS)
                one.sendall(first % body + b"z" * body + start + ending)
                answers = b""
                while answers.count(b"HTTP/1.1 ") < 2:  # what follows is no request
                    more = one.recv(read)
                    self.assertTrue(more, answers)
                    answers += more
            self.assertIn(b"HTTP/1.1 404", answers)
            self.assertIn(b"HTTP/1.1 200", answers)
        self.assertEqual(self.admin.get("/version").status, 200)

    def test_bodies_on_their_way_fill_no_memory(self):
        before = self.daemon.rss_mib()
        with kit.Background(self.mallory.popen(kit.PYTHON, "-c", BODIES, self.daemon.socket,
                                               str(CAP - 2), stdin=subprocess.PIPE)) as mallory:
            mallory.line()
            grown = self.daemon.rss_mib() - before
            print(f"# {CAP - 2} bodies of 1 MiB: {grown:.0f} MiB of memory", flush=True)
            self.assertLess(grown, 64)
            self.assert_runs(self.alice)

    def test_long_answers_to_one_user_hold_up_nobody(self):
        """Connections that cost 16 ms each are not worked off in one piece."""
        self.fill_the_queue()
        worst, whole = [], []
        token = self.daemon.user(self.mallory.name).token
        for count, token in ((0, ""), (LISTED, ""), (LISTED, token)):
            with kit.Background(self.alice.popen(kit.PYTHON, "-c", WORST, self.daemon.socket,
                                                 stdin=subprocess.PIPE)) as alice:
                alice.line()
                with self.lists(count, token) as mallory:
                    mallory.line()
                    answered, took_ms = mallory.result()
                    self.assertEqual(answered, count)
                worst.append(alice.result())
                whole.append(took_ms)
        print(f"# alice's longest wait for /version, ms: idle {worst[0]:.0f}, with {LISTED} lists "
              f"to mallory {worst[1]:.0f} (all: {whole[1]:.0f}), over TCP {worst[2]:.0f} "
              f"(all: {whole[2]:.0f})", flush=True)
        for worst_ms, whole_ms in zip(worst, whole):  # a slow machine takes longer for all of it
            self.assertLess(worst_ms, max(400, whole_ms / 4))

    def test_answers_that_nobody_reads_fill_no_memory(self):
        self.fill_the_queue()
        before = self.daemon.rss_mib()
        asked = [self.admin.get("/stats").json["http"]["requests"]]

        def lists():
            """How many have come; the questions for the number are requests too."""
            asked.append(self.admin.get("/stats").json["http"]["requests"])
            return asked[-1] - asked[0] - (len(asked) - 1)
        with self.lists(CAP - 2) as mallory:
            mallory.line()
            self.eventually(lambda: lists() >= CAP - 2, what=f"{CAP - 2} lists")
            grown = self.daemon.rss_mib() - before
            print(f"# {CAP - 2} lists that nobody reads: {grown:.0f} MiB of memory", flush=True)
            self.assertLess(grown, 90)
            self.assert_runs(self.alice)

    def fill_the_queue(self):
        """3,000 jobs, so that a page of them is a long answer."""
        if len(self.mallory.ask("GET", "/jobs?limit=1000")[1]["jobs"]) == 1000:
            return
        for i in range(3):
            statuses, last = self.mallory.ask("POST", "/jobs", {
                "command": "true", "hold": True, "gpus": 0, "cpus": 1 + i, "array": "0-999"})
            self.assertEqual(statuses, {201: 1}, last)

    def lists(self, count, token=""):
        return kit.Background(self.mallory.popen(
            kit.PYTHON, "-c", LISTS, self.port if token else self.daemon.socket, str(count), token,
            stdin=subprocess.PIPE))

    def test_strangers_have_little_time(self):
        """Silent, in the middle of a request, or between two."""
        strangers = [socket.create_connection(("127.0.0.1", int(self.port))) for _ in range(3)]
        strangers[1].sendall(HALF)
        strangers[2].sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        began = time.monotonic()
        for one in strangers:
            one.settimeout(kit.SECONDS)
            while one.recv(4096):
                pass
            one.close()
        self.assertLess(time.monotonic() - began, STRANGERS_S)

    def test_followers_of_one_user_are_limited(self):
        number = self.mallory.submit("--", "sleep", "60")
        hers = self.alice.submit("--", "sh", "-c", "echo hello; sleep 60")
        logs = f"/jobs/{number}/logs?follow=1"
        self.daemon.wait_for(hers, "running")
        self.eventually(lambda: "hello" in self.alice.acre("logs", hers).stdout)
        with self.follow(self.mallory, "/events", 20) as first:
            self.assertEqual(first.line()["held"], 20)
            with self.follow(self.mallory, logs, 180) as second:
                said = second.line()
                self.assertEqual(said["held"], FOLLOWERS - 20)
                for answer in said["refusals"]:
                    self.assertTrue(answer.startswith("HTTP/1.1 429"), answer)
                    self.assertIn(f"of at most {FOLLOWERS} (max_followers in the policy)", answer)
                with self.follow(self.alice, f"/jobs/{hers}/logs?follow=1", 1) as alice:
                    self.assertEqual(alice.line(), {"held": 1, "refusals": []})
                with self.root_follows(logs, 200) as held:  # root is not held to it
                    self.assertEqual(held, 200)

        def free_again():  # what has gone does not count
            with self.follow(self.mallory, "/events", FOLLOWERS) as again:
                return again.line()["held"] == FOLLOWERS
        self.eventually(free_again)
        for job in (number, hers):
            self.admin.ask("DELETE", f"/jobs/{job}")

    def test_a_command_that_may_not_follow_does_not_flood_the_daemon(self):
        with self.follow(self.mallory, "/events", FOLLOWERS) as streams:
            self.assertEqual(streams.line()["held"], FOLLOWERS)
            before = self.admin.get("/stats").json["http"]["requests"]
            result = self.mallory.acre("run", "--", "sleep", "1")
            asked = self.admin.get("/stats").json["http"]["requests"] - before
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(result.stderr.count("policy max_followers"), 1, result)
        self.assertLess(asked, 50)

    def follow(self, user, path, count):
        return kit.Background(user.popen(kit.PYTHON, "-c", FOLLOW, self.daemon.socket, path,
                                         str(count), stdin=subprocess.PIPE))

    def root_follows(self, path, count):
        class Held:
            def __init__(self, address):
                self.connections = []
                for _ in range(count):
                    one = kit.api.UnixConnection(address)
                    one.request("GET", path)
                    self.connections.append((one, one.getresponse().status))

            def __enter__(self):
                return sum(status == 200 for _, status in self.connections)

            def __exit__(self, *_):
                for one, _ in self.connections:
                    one.close()
        return Held(self.daemon.socket)

    def test_a_job_has_the_usual_limit_of_open_files(self):
        number = self.alice.submit("--", "sh", "-c", "ulimit -Sn")
        self.daemon.wait_for(number, "completed")
        self.assertEqual(self.alice.acre("logs", number).stdout.strip(), "1024")


class FewDescriptors(kit.TestCase):
    """The daemon runs out of them while mallory has what he can get."""

    def test_root_gets_in(self):
        port = str(self.daemon.port)
        used = len(os.listdir(f"/proc/{self.daemon.pid}/fd"))
        hard = resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (used + 30, hard))
        with kit.loading(self.mallory, "hold", self.daemon.socket, 500) as mallory, \
                kit.loading(self.mallory, "hold", port, 500) as also:
            mallory.line()
            also.line()
            for _ in range(20):
                self.assertEqual(self.admin.get("/jobs?limit=1").status, 200)
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (hard, hard))
        self.assert_runs(self.alice)


class Start(unittest.TestCase):
    """With a small soft limit of open files."""

    def setUp(self):
        kit.need_users()
        soft, self.hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self.hard < 8192:
            self.skipTest(f"the hard limit of open files is {self.hard} here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, self.hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, self.hard))

    def test_the_limit_of_open_files_is_raised_as_needed_and_said(self):
        with kit.Daemon("--connections", "2000") as daemon:
            self.assertIn("connections=2000 open_files=8096", daemon.said())
            limit = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
            self.assertEqual(limit, (8096, self.hard))

    def test_the_hard_limit_of_open_files_decides_and_is_said(self):
        if self.hard >= OPEN_FILES:
            self.skipTest(f"the hard limit of open files is {self.hard} here, enough for all")
        with kit.Daemon("--connections", "1000000") as daemon:
            self.assertIn("fewer connections than requested", daemon.said())
            self.assertIn(f"open_files={self.hard}", daemon.said())
            self.assertEqual(daemon.admin.get("/stats").status, 200)


class Tls(unittest.TestCase):
    """A handshake that never ends holds a place for no longer than another silence does."""

    def test_slow_handshakes_keep_nobody_out(self):
        kit.need_users()
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = os.path.join(folder, "key"), os.path.join(folder, "cert")
            made = subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                 "-days", "2", "-subj", "/CN=localhost"], capture_output=True, check=False)
            if made.returncode != 0:
                self.skipTest("no openssl to make a certificate with")
            with kit.Daemon("--tls-cert", certificate, "--tls-key", key) as daemon:
                self.flood(daemon)

    def flood(self, daemon):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        shake = context.wrap_bio(incoming, outgoing)
        try:
            shake.do_handshake()
        except ssl.SSLWantReadError:
            pass
        half = outgoing.read()[:100]
        held = []
        for i in range(300):
            one = socket.create_connection(("127.0.0.1", daemon.port),
                                           source_address=(f"127.0.2.{i % 2 + 1}", 0))
            try:
                one.sendall(half)
            except OSError:
                pass
            held.append(one)
        began = time.monotonic()
        for _ in range(100):  # one that made room counts until the next turn of the loop
            counts = daemon.admin.get("/stats").json["http"]
            if counts["connections"] <= CAP + 2:
                break
        self.assertLessEqual(counts["connections"], CAP + 2)
        for one in held:  # all are closed: at once, or when their time is over
            one.settimeout(kit.SECONDS)
            try:
                while one.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            one.close()
        self.assertLess(time.monotonic() - began, STRANGERS_S)
        print(f"# 300 half handshakes: {json.dumps(counts)}", flush=True)
