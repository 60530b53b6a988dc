"""What submissions may cost (SEC-1): the daemon's memory and disk, and the others' place."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

LABELED = 20000 if kit.IS_LONG else 5000  # jobs with 8 labels each: kept, they take 1 MiB and more


class Submissions(kit.TestCase):
    def setUp(self):
        self.daemon.stop()
        self.daemon.start()  # what is limited by time begins again from the start
        self.assert_runs(self.alice)  # and what the first request of all costs is spent
        self.rss_mib, self.disk_mib = self.daemon.rss_mib(), self.daemon.disk_mib()

    def tearDown(self):
        self.daemon.run("policy", "set", "max_queued_jobs=10000", "max_queued_size=64MiB",
                        "max_names=10000", "max_array=1000")
        self.daemon.end_jobs()

    def grown(self):
        return self.daemon.rss_mib() - self.rss_mib, self.daemon.disk_mib() - self.disk_mib

    def test_an_array_costs_its_text_once(self):
        big = {"script": "#" + "x" * 900000, "array": "0-99", "hold": True}
        statuses, answer = self.mallory.ask("POST", "/jobs", big)
        self.assertEqual((statuses, len(answer["jobs"])), ({201: 1}, 100))
        rss_mib, disk_mib = self.grown()
        self.assertLess(rss_mib, 16, "of memory, for a text of 0.9 MB")
        self.assertLess(disk_mib, 8, "of disk")
        self.assert_runs(self.alice)

    def test_members_of_an_array_start_with_its_text_after_a_restart(self):
        body = {"script": "echo $ACRE_ARRAY_INDEX", "array": "5-7", "hold": True}
        _, answer = self.mallory.ask("POST", "/jobs", body)
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.mallory.acre("release", "--array", str(answer["array"])).returncode,
                         0)
        for number, index in zip(answer["jobs"], (5, 6, 7)):
            self.daemon.wait_for(str(number), "completed")
            self.assertEqual(self.mallory.acre("logs", str(number)).stdout, f"{index}\n")

    def test_a_user_has_so_many_jobs_waiting(self):
        def submit(user, count):
            return user.ask("POST", "/jobs", {"command": "true", "hold": True,
                                              "array": f"1-{count}"})
        self.daemon.run("policy", "set", "max_queued_jobs=100")
        self.assertEqual(submit(self.mallory, 90)[0], {201: 1})
        statuses, answer = submit(self.mallory, 11)
        self.assertEqual(statuses, {413: 1}, answer)
        for word in ("90", "100", "11", "max_queued_jobs"):
            self.assertIn(word, answer["detail"])
        self.assertEqual(submit(self.mallory, 10)[0], {201: 1})
        self.assertEqual(submit(self.mallory, 1)[0], {413: 1})
        self.assert_runs(self.alice)
        admin = self.daemon.admin.post("/jobs", {"command": "true", "hold": True, "array": "1-200"})
        self.assertEqual(admin.status, 201, admin)

    def test_an_array_has_so_many_members(self):
        body = {"command": "true", "hold": True, "array": "0-1000"}
        statuses, answer = self.mallory.ask("POST", "/jobs", body)
        self.assertEqual(statuses, {413: 1}, answer)
        for word in ("array", "1001", "1000", "max_array"):
            self.assertIn(word, answer["detail"])
        self.assertEqual(self.daemon.admin.post("/jobs", body).status, 201)

    def test_a_user_adds_so_much_to_the_record(self):
        """Canceled at once, nothing of it waits; on disk all of it stays."""
        self.daemon.run("policy", "set", "max_queued_size=4MiB", "max_queued_jobs=100")
        body = {"script": "#" + "x" * 1000000, "hold": True}
        accepted = 0
        for _ in range(20):
            statuses, answer = self.mallory.ask("POST", "/jobs", body)
            if statuses != {201: 1}:
                break
            accepted += 1
            self.mallory.acre("cancel", str(answer["job"]["id"]))
        self.assertEqual(statuses, {413: 1}, answer)
        self.assertIn("max_queued_size", answer["detail"])
        self.assertTrue(3 <= accepted <= 5, accepted)
        self.assert_runs(self.alice)

    def test_arrays_come_by_time(self):
        """Each is made in one step, for which the others wait."""
        self.daemon.run("policy", "set", "max_queued_jobs=1000", "max_array=500")
        array = {"command": "true", "hold": True, "array": "0-499"}
        for _ in range(2):
            statuses, answer = self.mallory.ask("POST", "/jobs", array)
            self.assertEqual(statuses, {201: 1}, answer)
            statuses, answer = self.mallory.ask("DELETE", f"/arrays/{answer['array']}")
            self.assertEqual(statuses, {202: 1}, answer)
        statuses, answer = self.mallory.ask("POST", "/jobs", array)
        self.assertEqual(statuses, {413: 1}, answer)
        self.assertRegex(answer["detail"],
                         r"500 members .* try again in \d+ s\. .*max_queued_jobs")
        self.assertEqual(self.mallory.ask("POST", "/jobs", {"command": "true"})[0], {201: 1})
        self.assertEqual(self.alice.ask("POST", "/jobs", array)[0], {201: 1})

    def test_large_bodies_come_by_time(self):
        """One that is refused costs the others as much as one that is not."""
        body = {"script": "#" + "x" * 1000000, "colour": "red"}
        statuses, answer = self.mallory.ask("POST", "/jobs", body, count=20)
        self.assertEqual(set(statuses), {400, 429}, answer)
        self.assertTrue(8 <= statuses[400] < 15, statuses)  # one more each 7 s
        self.assertRegex(answer["detail"], r"976 KiB; .* 8 MiB a minute .* try again in \d s")
        self.assertEqual(self.mallory.ask("POST", "/jobs", {"command": "true"})[0], {201: 1})
        del body["colour"]
        self.assertEqual(self.alice.ask("POST", "/jobs", body)[0], {201: 1})

    def test_a_user_has_so_much_text_waiting(self):
        self.daemon.run("policy", "set", "max_queued_size=4MiB")
        big = {"script": "#" + "x" * 1000000, "hold": True, "array": "0-9"}
        statuses, answer = self.mallory.ask("POST", "/jobs", big, count=6)
        self.assertEqual(statuses, {201: 4, 413: 2}, answer)
        for word in ("4 MiB", "max_queued_size"):
            self.assertIn(word, answer["detail"])
        self.daemon.stop()
        self.daemon.start()  # it is counted again
        self.assertEqual(self.mallory.ask("POST", "/jobs", big)[0], {413: 1})
        first = self.daemon.json("queue", "--user", self.mallory.name)["jobs"][0]["array"]["id"]
        canceled = self.daemon.run("cancel", "--array", str(first))
        self.assertEqual(canceled.returncode, 0, canceled)
        self.eventually(lambda: self.mallory.ask("POST", "/jobs", big)[0] == {201: 1})
        self.assert_runs(self.alice)

    def test_refused_labels_are_not_kept(self):
        def labels(i):
            return {"command": "true", "labels": [f"{i:024}{j}=x" for j in range(8)]}
        self.mallory.ask("POST", "/jobs", labels, count=200)
        before_mib = self.daemon.rss_mib()
        statuses, answer = self.mallory.ask("POST", "/jobs", lambda i: labels(i + 1000), LABELED,
                                            at_once=4)
        self.assertEqual(statuses, {409: LABELED}, answer)
        self.assertLess(self.daemon.rss_mib() - before_mib, 1)
        self.assert_runs(self.alice)

    def test_refused_names_are_not_kept(self):
        def named(i):
            return {"command": "true", "gpus": 64, "name": f"n{i:060}", "project": f"p{i:060}"}
        self.mallory.ask("POST", "/jobs", named, count=200)
        before_mib = self.daemon.rss_mib()
        statuses, answer = self.mallory.ask("POST", "/jobs", lambda i: named(i + 1000), 10000,
                                            at_once=4)
        self.assertEqual(statuses, {403: 10000}, answer)
        self.assertLess(self.daemon.rss_mib() - before_mib, 1)

    def test_names_go_with_their_jobs(self):
        def turn(number):
            """900 jobs, each with a name of its own, that end with the job they wait for."""
            _, answer = self.mallory.ask("POST", "/jobs", {"command": "true", "hold": True})
            first = answer["job"]["id"]

            def named(i):
                return {"command": "true", "after": [f"ok:{first}"],
                        "name": f"{number:030}{i:030}"}
            statuses, answer = self.mallory.ask("POST", "/jobs", named, count=900, at_once=16)
            self.assertEqual(statuses, {201: 900}, answer)
            self.assertEqual(self.mallory.acre("cancel", str(first)).returncode, 0)
        for number in range(5):  # until what SQLite keeps in memory is as large as it gets
            turn(number)
        before_mib = self.daemon.rss_mib()
        turns = 3 if self.daemon.is_sanitized else 30 if kit.IS_LONG else 20
        for number in range(5, 5 + turns):
            turn(number)
        self.assertLess(self.daemon.rss_mib() - before_mib, 1.5)  # with all the names: 2 or 3 MiB

    def test_a_user_has_so_many_names(self):
        def named(i):
            return {"command": "true", "hold": True, "name": f"n{i}"}
        self.daemon.run("policy", "set", "max_names=10")
        statuses, answer = self.mallory.ask("POST", "/jobs", named, count=12)
        self.assertEqual(statuses, {201: 10, 413: 2}, answer)
        for word in ("10", "max_names", "n11"):
            self.assertIn(word, answer["detail"])
        self.assertEqual(self.mallory.ask("POST", "/jobs", named)[0], {201: 1})  # n0 again
        self.assertEqual(self.alice.ask("POST", "/jobs", named, count=10)[0], {201: 10})


class Allocations(kit.TestCase):
    """POST /cluster/gpu-allocate: a name is its user's."""

    def test_names_of_two_users_do_not_meet(self):
        def allocate(user):
            return user.ask("POST", "/cluster/gpu-allocate", {"job_id": "run-7", "gpu_count": 1})

        def release(user):
            return user.ask("POST", "/cluster/gpu-release", {"job_id": "run-7"})

        statuses, alices = allocate(self.alice)
        self.assertEqual(statuses, {200: 1}, alices)
        statuses, answer = release(self.mallory)
        self.assertEqual(statuses, {404: 1}, answer)
        statuses, own = allocate(self.mallory)
        self.assertEqual(statuses, {200: 1}, own)
        statuses, answer = allocate(self.mallory)
        self.assertEqual(statuses, {409: 1}, answer)
        self.assertIn(f"job {own['id']}", answer["detail"])
        self.assertEqual(release(self.mallory)[1]["id"], own["id"])
        self.assertEqual(release(self.mallory)[0], {404: 1})
        self.daemon.wait_for(alices["id"], "running")
        self.assertEqual(release(self.alice)[0], {200: 1})
