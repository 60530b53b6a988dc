"""What changing one's own things may cost (SEC-1): each change stays in the audit trail."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

MEMBERS = 500


class Changes(kit.TestCase):
    def setUp(self):
        self.daemon.stop()
        self.daemon.start()  # what is limited by time begins again
        self.set_policy(max_queued_jobs=1000, max_array=MEMBERS, max_queued_size="1MiB")

    def tearDown(self):
        self.daemon.end_jobs()

    def set_policy(self, **values):
        result = self.daemon.run("policy", "set",
                                 *(f"{key}={value}" for key, value in values.items()))
        self.assertEqual(result.returncode, 0, result)

    def submit(self, **more):
        if "script" not in more:
            more["command"] = "true"
        statuses, answer = self.mallory.ask("POST", "/jobs", {"hold": True, **more})
        self.assertEqual(statuses, {201: 1}, answer)
        return answer

    def newest_record(self):
        return self.daemon.json("audit", "--limit", "1")["audit"][0]["seq"]

    def test_changes_of_an_array_come_by_time(self):
        """A request of 80 bytes writes a record for each member."""
        array = self.submit(array=f"0-{MEMBERS - 1}")["array"]
        before = self.newest_record()
        statuses, answer = self.mallory.ask(
            "PATCH", f"/arrays/{array}/priority", lambda i: {"priority": 1 + i % 2 * 2}, count=40)
        self.assertIn(413, statuses, answer)
        self.assertLess(statuses.get(200, 0), 10)
        for word in (f"{MEMBERS} members", "try again in", "max_queued_jobs"):
            self.assertIn(word, answer["detail"])
        self.assertLess(self.newest_record() - before, 12 * MEMBERS)
        statuses, answer = self.mallory.ask("DELETE", f"/arrays/{array}")  # for nothing
        self.assertEqual(statuses, {202: 1}, answer)
        self.assert_runs(self.alice)

    def spend(self):
        """Leave some 60 KiB of what mallory may more than your budget allows."""
        self.set_policy(max_queued_jobs=10)
        self.mallory.ask("DELETE", f"/jobs/{self.submit(script='#' + 'x' * 1000000)['job']['id']}")

    def test_changes_of_one_job_come_by_time(self):
        self.spend()
        job = self.submit()["job"]["id"]
        statuses, answer = self.mallory.ask(
            "PATCH", f"/jobs/{job}/priority", lambda i: {"priority": 1 + i % 2 * 2}, count=300)
        self.assertIn(413, statuses, answer)
        self.assertIn("more than your budget allows now", answer["detail"])
        self.assertIn(413, self.mallory.ask("POST", f"/jobs/{job}/hold", {}, count=30)[0])
        self.assertEqual(self.mallory.ask("DELETE", f"/jobs/{job}")[0], {202: 1})  # for nothing

    def test_tokens_and_reservations_come_by_time(self):
        def make_and_remove(path, body):
            statuses, answer = {201: 1}, None
            for _ in range(300):
                statuses, answer = self.mallory.ask("POST", path, body)
                if statuses != {201: 1}:
                    break
                made = answer.get("token") or answer["reservation"]
                self.mallory.ask("DELETE", f"{path}/{made['id']}")
            return statuses, answer
        self.spend()
        for path, body in (("/tokens", {}),
                           ("/reservations", {"gpus": 1, "start": "1h", "duration": "1m"})):
            with self.subTest(path=path):
                statuses, answer = make_and_remove(path, body)
                self.assertEqual(statuses, {413: 1}, answer)
                self.assertIn("more than your budget allows", answer["detail"])

    def test_a_priority_that_stays_is_no_record(self):
        array = self.submit(array=f"0-{MEMBERS - 1}")["array"]
        before = self.newest_record()
        statuses, answer = self.mallory.ask("PATCH", f"/arrays/{array}/priority", {"priority": 2})
        self.assertEqual((statuses, len(answer["jobs"])), ({200: 1}, MEMBERS), answer)
        self.assertEqual(self.newest_record(), before)
