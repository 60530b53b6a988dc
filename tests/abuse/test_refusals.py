"""Refused requests cost nobody anything (SEC-1, SEC-3): not the disk, not the memory, not the
others' time; and what is changed meanwhile is still recorded."""
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

# Of a user. Were each recorded, in 100 bytes or more, the fewer would be above DISK_MIB, too.
REQUESTS = 100_000 if kit.IS_LONG else 20_000
STRANGERS = 10_000  # requests of strangers, each on a connection of its own once they are limited
STRANGERS_MIN = 1000  # of these, on a slow machine in STRANGERS_S
STRANGERS_S = 15
DISK_MIB = 1
MEMORY_MIB = 32
SUBMISSIONS = 200
FLOODED = 50  # requests of a flood at least, while alice submits
PATH = "/nope" + "x" * 300


class Refusals(kit.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = str(cls.daemon.port)
        cls.alice_submits(20)  # what every first time costs
        cls.idle = cls.alice_submits()

    def setUp(self):
        self.disk, self.memory = self.daemon.disk_mib(), self.daemon.rss_mib()

    @classmethod
    def alice_submits(cls, count=SUBMISSIONS):
        return kit.loaded(cls.alice, "submit", cls.daemon.socket, count)

    def assert_small(self, what, disk_mib=DISK_MIB):
        """Nothing worth mentioning is left of it."""
        disk, memory = self.daemon.disk_mib() - self.disk, self.daemon.rss_mib() - self.memory
        print(f"# {what}: {disk:.2f} MiB of disk, {memory:.1f} MiB of memory", flush=True)
        self.assertLess(disk, disk_mib, what)
        self.assertLess(memory, MEMORY_MIB, what)

    def flood(self, what, text, count=REQUESTS):
        """Of a user: all of it is answered."""
        result = kit.loaded(self.mallory, "flood", self.daemon.socket, count, text)
        print(f"# {what}: {result}", flush=True)
        self.assertEqual((result["sent"], result["answered"]), (count, count), what)
        self.assert_small(what)

    def strangers_flood(self, what, text):
        """They are cut off, and come back."""
        result = kit.loaded(self.mallory, "flood", self.port, STRANGERS, text, STRANGERS_S)
        print(f"# {what}: {result}", flush=True)
        self.assertGreaterEqual(result["sent"], STRANGERS_MIN, what)
        self.assertGreaterEqual(result["connections"], STRANGERS_MIN // 2, what)
        self.assertGreaterEqual(result["answered"], 1, what)
        self.assert_small(what)

    def test_strangers_fill_no_disk_with_unknown_paths(self):
        self.strangers_flood(
            "unknown paths",
            f"POST {PATH} HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\n\\r\\n")
        rows = self.admin.get("/audit?actor=nobody&limit=1000").json["audit"]
        self.assertFalse([row for row in rows if "nope" in row["target"]])

    def test_strangers_fill_no_disk_with_wrong_methods(self):
        self.strangers_flood("wrong methods",
                             "DELETE /version HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")

    def test_strangers_fill_no_disk_with_wrong_tokens(self):
        self.strangers_flood("wrong tokens",
                             "POST /jobs HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\n"
                             "Authorization: Bearer acre_1_x\\r\\n\\r\\n")

    def test_strangers_fill_no_disk_with_what_is_no_request(self):
        self.strangers_flood("no requests", "NONSENSE\\r\\n\\r\\n")

    def test_strangers_are_limited_on_open_routes_too(self):
        connection = kit.api.Client(int(self.port)).connect()
        statuses = set()
        for _ in range(3000):
            connection.request("GET", "/health/live")
            answer = connection.getresponse()
            answer.read()
            statuses.add(answer.status)
            if answer.status == 429:
                self.assertEqual(answer.headers["Connection"], "close")
                self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
                break
        connection.close()
        self.assertEqual(statuses, {200, 429})

    def test_a_user_fills_no_disk_with_refused_submissions(self):
        bad = json.dumps({"command": "true", "gpus": 0, "name": "x" * 60})
        self.flood("refused submissions",
                   f"POST /jobs HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: {len(bad)}\\r\\n\\r\\n"
                   + bad)

    def test_a_user_fills_no_disk_with_what_is_not_his(self):
        number = self.alice.submit("--hold", "--", "true")
        self.flood("others' jobs",
                   f"DELETE /jobs/{number} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n", 20_000)

    def asked(self):
        """Requests and connections that the daemon has had to do with."""
        counts = self.admin.get("/stats").json["http"]
        return counts["requests"] + counts["refused"]

    def assert_unharmed(self, what, *flood):
        """During two floods alice waits little longer than next to two programs that compute."""
        with kit.loading(self.mallory, "burn", "-", 60), kit.loading(self.mallory, "burn", "-", 60):
            computing = self.alice_submits()
        with kit.loading(self.mallory, *flood), kit.loading(self.mallory, *flood):
            before = self.asked()
            self.eventually(lambda: self.asked() > before + FLOODED, what="a flood")
            most_ms = max(3 * computing["p99"], kit.GENEROUS_MS)
            before = self.asked()
            attempts = kit.at_best(self.alice_submits, most_ms)
            asked = self.asked() - before - len(attempts) * SUBMISSIONS
            flooded = attempts[-1]
        print(f"# alice's submissions, ms: idle {self.idle}, computing {computing}, "
              f"{what} {flooded}; {asked} requests meanwhile", flush=True)
        self.assertGreater(asked, FLOODED, what)
        self.assertLess(flooded["p99"], most_ms)

    def test_strangers_do_not_slow_the_others_down(self):
        self.assert_unharmed("strangers' floods", "flood", self.port, 1000 * REQUESTS,
                             f"POST {PATH} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")

    def test_a_user_does_not_slow_the_others_down(self):
        self.assert_unharmed("a user's floods", "flood", self.daemon.socket, 1000 * REQUESTS,
                             "POST /nope HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")


class Records(unittest.TestCase):
    def setUp(self):
        kit.need_users()
        self.daemon = self.enterContext(kit.Daemon())
        self.mallory = kit.User("acre-mallory", self.daemon)

    def rows(self):
        return self.daemon.admin.get("/audit?actor=user:acre-mallory&limit=1000").json["audit"]

    def test_what_was_not_recorded_one_by_one_is_counted(self):
        flood = kit.loaded(self.mallory, "flood", self.daemon.socket, 10_000,
                           "POST /nope HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        self.assertEqual(flood["answered"], 10_000)
        number = self.mallory.submit("--hold", "--", "true")  # a change is recorded all the same
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        rows = self.rows()
        self.assertIn(f"job:{number}", [row["target"] for row in rows])
        each = [row for row in rows if row["target"] == "/nope"]
        self.assertEqual(len(each), 60)
        more = [row for row in rows if "more refused requests" in row["detail"]]
        self.assertEqual(len(more), 1, rows[:5])
        self.assertEqual(more[0]["origin"], f"unix:{self.mallory.uid}")
        self.assertEqual(int(more[0]["detail"].split()[0]), 10_000 - len(each))
        self.assertTrue(self.daemon.admin.get("/audit/verify").json["ok"])

    def test_records_are_short(self):
        self.mallory.python(
            "import socket, sys\n"
            "one = socket.socket(socket.AF_UNIX)\n"
            "one.connect(sys.argv[1])\n"
            "one.sendall(b'POST /' + b'y' * 8000 + b' HTTP/1.1\\r\\nHost: a\\r\\n"
            "Connection: close\\r\\n\\r\\n')\n"
            "while one.recv(65536): pass\n", self.daemon.socket)
        deadline = time.monotonic() + kit.SECONDS
        while not self.rows():  # it is recorded after the answer
            self.assertLess(time.monotonic(), deadline)
        row = self.rows()[0]
        self.assertTrue(row["target"].startswith("/yyy"), row)
        self.assertLess(sum(len(str(value)) for value in row.values()), 800, row)
