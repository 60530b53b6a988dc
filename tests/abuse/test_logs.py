"""Logs: what the jobs of one user take of the disk (SEC-2), and that they arrive."""
import datetime
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit


class Followers(kit.TestCase):
    def test_output_is_complete_when_followers_are_refused(self):
        """`acre run` follows two logs and the events: here one of them is refused or two."""
        self.daemon.run("policy", "set", "max_followers=1")
        self.addCleanup(self.daemon.run, "policy", "set", "max_followers=128")
        result = self.mallory.acre("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((result.returncode, result.stdout), (3, "out\n"), result)
        self.assertIn("err\n", result.stderr)


class Logs(kit.TestCase):
    LIMIT_MIB, EACH_MIB, JOBS = 4, 1, 10

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.daemon.run("policy", "set", f"max_logs={cls.LIMIT_MIB}MiB")
        assert result.returncode == 0, result
        cls.logs = os.path.join(cls.daemon.state, "logs")

    def used_mib(self, uid=None):
        """On disk, of one user or of all."""
        total = 0
        for entry in os.scandir(self.logs):
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            total += info.st_blocks * 512 if uid in (None, info.st_uid) else 0
        return total / (1 << 20)

    def flood(self, user, count):
        numbers = [user.submit("--", "sh", "-c", f"head -c {self.EACH_MIB}M /dev/zero | tr '\\0' x")
                   for _ in range(count)]
        for number in numbers:
            self.daemon.wait_for(number, "completed")
        return numbers

    def test_a_flood_is_slowed_down(self):
        """16 MB are read at once, then 4 MB a second: this one would need a moment otherwise."""
        number = self.mallory.submit("--", "head", "-c", "24000000", "/dev/zero")
        job = self.daemon.wait_for(number, "completed")
        times = [datetime.datetime.fromisoformat(job[key].replace("Z", "+00:00"))
                 for key in ("started", "ended")]
        self.assertGreater((times[1] - times[0]).total_seconds(), 1)

    def test_a_flood_of_logs_costs_the_oldest_of_the_same_user(self):
        kept = self.alice.submit("--", "echo", "hers")
        self.daemon.wait_for(kept, "completed")
        numbers = self.flood(self.mallory, self.JOBS)
        self.eventually(lambda: self.used_mib() <= self.LIMIT_MIB + 0.1, what="the limit")
        self.assertGreater(self.used_mib(), self.EACH_MIB * 1.5, "more was removed than need be")
        self.assertEqual(self.alice.acre("logs", kept).stdout, "hers\n")
        oldest = self.mallory.acre("logs", numbers[0])
        self.assertNotEqual(oldest.returncode, 0, oldest.stdout[:200])
        for words in ("removed", "max_logs", f"{self.LIMIT_MIB} MiB"):
            self.assertIn(words, oldest.stderr)
        newest = self.mallory.acre("logs", numbers[-1])
        self.assertEqual(len(newest.stdout), self.EACH_MIB << 20, newest.stderr)
        silent = self.mallory.submit("--", "true")
        self.daemon.wait_for(silent, "completed")
        self.assertEqual(self.mallory.acre("logs", silent).returncode, 0)

    def test_what_an_earlier_daemon_left_counts(self):
        numbers = self.flood(self.alice, 3)
        self.daemon.stop()
        self.daemon.start()
        more = self.flood(self.alice, 3)
        self.eventually(lambda: self.used_mib(self.alice.uid) <= self.LIMIT_MIB + 0.1,
                        what="the limit")
        self.assertNotEqual(self.alice.acre("logs", numbers[0]).returncode, 0)
        self.assertEqual(len(self.alice.acre("logs", more[-1]).stdout), self.EACH_MIB << 20)

    def test_files_of_logs_belong_to_the_user_and_are_out_of_reach(self):
        number = self.mallory.submit("--", "echo", "mine")
        self.daemon.wait_for(number, "completed")
        names = [name for name in os.listdir(self.logs) if re.match(rf"{number}\.", name)]
        self.assertEqual([os.stat(os.path.join(self.logs, name)).st_uid for name in names],
                         [self.mallory.uid])
        self.assertNotEqual(self.mallory.sh("cat", os.path.join(self.logs, names[0])).returncode, 0)
