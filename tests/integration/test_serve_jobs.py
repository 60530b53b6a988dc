"""The daemon over HTTP: jobs from submission to their recorded end (JOB-1 to JOB-6, POL-10, API-1,
STO-1). Real processes on simulated devices."""
import os
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api


class Jobs(api.TestCase):
    def test_a_job_runs_and_its_end_is_recorded(self):
        number = self.admin.submit(command=["sh", "-c", "echo out; echo err >&2; exit 3"],
                                   name="three", environment={"A": "1"})
        job = self.admin.wait(number, "failed")
        self.assertEqual((job["exit"]["kind"], job["exit"]["code"]), ("exited", 3))
        self.assertEqual((job["name"], job["attempt"], job["simulated"]), ("three", 1, True))
        self.assertTrue(job["submitted"] <= job["started"] <= job["ended"])
        self.assertIsNone(job["why"])
        job = self.admin.job(number)  # from the record: where it was
        self.assertEqual([part["node"] for part in job["allocation"]], ["gpu-a"])
        logs = self.admin.get(f"/jobs/{number}/logs")
        self.assertEqual((logs.status, logs.body), (200, b"out\n"))
        self.assertEqual((logs.headers["X-Log-Offset"], logs.headers["X-Log-Size"]), ("0", "4"))
        self.assertEqual(self.admin.get(f"/jobs/{number}/logs?stream=stderr").body, b"err\n")

    def test_ranges_of_logs(self):
        number = self.admin.submit(command="printf 0123456789")
        self.admin.wait(number, "completed")
        for query, expected in [("offset=3", b"3456789"), ("offset=3&limit=2", b"34"),
                                ("offset=-4", b"6789"), ("offset=-99", b"0123456789"),
                                ("offset=50", b""), ("limit=1", b"0")]:
            with self.subTest(query=query):
                self.assertEqual(self.admin.get(f"/jobs/{number}/logs?{query}").body, expected)

    def test_a_range_is_no_larger_than_what_is_kept_for_a_client(self):
        number = self.admin.submit(command="head -c 3000000 /dev/zero | tr '\\0' x")
        self.admin.wait(number, "completed")
        self.assertEqual(len(self.admin.get(f"/jobs/{number}/logs").body), 1 << 20)
        self.assert_problem(self.admin.get(f"/jobs/{number}/logs?limit={(1 << 20) + 1}"), 400,
                            "limit", "1048576")

    def test_logs_are_followed_to_the_end(self):
        number = self.admin.submit(command="for i in 1 2 3; do echo $i; sleep 0.1; done")
        answer = self.admin.get(f"/jobs/{number}/logs?follow=1")
        self.assertEqual(answer.body, b"1\n2\n3\n")

    def test_a_large_log_reaches_a_slow_reader_whole(self):
        number = self.admin.submit(command="head -c 3000000 /dev/zero | tr '\\0' x")
        answer = self.admin.get(f"/jobs/{number}/logs?follow=1")
        self.assertEqual(len(answer.body), 3000000)

    def test_a_script_and_its_interpreter(self):
        number = self.admin.submit(script="#!/usr/bin/env python3\nprint(6 * 7)\n")
        self.admin.wait(number, "completed")
        self.assertEqual(self.admin.get(f"/jobs/{number}/logs").body, b"42\n")

    def test_what_a_job_is_told_about_itself(self):
        number = self.admin.submit(command="echo $ACRE_JOB_ID $ACRE_JOB_NAME $X", name="n",
                                   environment={"X": "y z"})
        self.admin.wait(number, "completed")
        self.assertEqual(self.admin.get(f"/jobs/{number}/logs").body, f"{number} n y z\n".encode())

    def test_an_array(self):
        answer = self.admin.post("/jobs", {"command": "echo $ACRE_ARRAY_INDEX", "array": "3-7%2"})
        self.assertEqual(answer.status, 201)
        first, numbers = answer.json["array"], answer.json["jobs"]
        self.assertEqual(numbers, list(range(first, first + 5)))
        for index, number in enumerate(numbers):
            job = self.admin.wait(number, "completed")
            self.assertEqual(job["array"], {"id": first, "index": 3 + index})
            self.assertEqual(self.admin.get(f"/jobs/{number}/logs").body, f"{3 + index}\n".encode())
        listed = self.admin.get(f"/jobs?all=1&array={first}").json["jobs"]
        self.assertEqual(sorted(job["id"] for job in listed), numbers)

    def test_an_array_as_a_whole(self):
        first = self.admin.post("/jobs", {"command": "sleep 60", "array": "0-2",
                                          "hold": True}).json["array"]
        members = [first, first + 1, first + 2]
        self.assert_problem(self.admin.post(f"/arrays/{first}/hold"), 409, "already held")
        self.assertEqual(self.admin.ask("DELETE", f"/jobs/{first + 1}").status, 202)
        answer = self.admin.ask("PATCH", f"/arrays/{first}/priority", {"priority": "high"})
        self.assertEqual((answer.status, answer.json),
                         (200, {"array": first, "jobs": [first, first + 2]}))
        self.assertEqual(self.admin.get(f"/jobs/{first}").json["job"]["priority"], 3)
        self.assertEqual(self.admin.post(f"/arrays/{first}/release").json["jobs"],
                         [first, first + 2])
        self.admin.wait(first, "running")
        self.admin.wait(first + 2, "running")
        self.assert_problem(self.admin.post(f"/arrays/{first}/hold"), 409,
                            "only queued jobs can be held")
        self.assertEqual(self.admin.ask("DELETE", f"/arrays/{first}").status, 202)
        for member in members:
            self.admin.wait(member, "canceled")
        self.assert_problem(self.admin.ask("DELETE", f"/arrays/{first}"), 409, "have already ended")
        single = self.admin.submit(command="true")
        self.assert_problem(self.admin.ask("DELETE", f"/arrays/{single}"), 404,
                            f"no array {single}")

    def test_dependencies(self):
        good = self.admin.submit(command="true")
        bad = self.admin.submit(command="false")
        self.admin.wait(good, "completed")
        self.admin.wait(bad, "failed")
        held = self.admin.submit(command="true", hold=True)
        self.assertEqual(self.admin.wait(self.admin.submit(command="true", after=[f"ok:{good}"]),
                                         "completed")["state"], "completed")
        self.admin.wait(self.admin.submit(command="true", after=[f"any:{bad}"]), "completed")
        self.assert_problem(self.admin.post("/jobs", {"command": "true", "after": [f"ok:{bad}"]}),
                            409, f"job {bad} did not complete")
        waits = self.admin.submit(command="true", after=[f"ok:{held}"])
        why = self.admin.get(f"/jobs/{waits}/why").json
        self.assertEqual((why["why"]["reason"], why["why"]["other"]), ("dependency", held))
        self.assertEqual(self.admin.post(f"/jobs/{held}/release").status, 200)
        self.admin.wait(waits, "completed")

    def test_who_is_canceled_for_a_dependency_is_told(self):
        held = self.admin.submit(command="false", hold=True)
        waits = self.admin.submit(command="true", after=[f"ok:{held}"])
        last = self.admin.submit(command="true", after=[f"ok:{waits}"])
        self.assertEqual(self.admin.post(f"/jobs/{held}/release").status, 200)
        for number, other in ((waits, held), (last, waits)):
            ended = self.admin.wait(number, "canceled")["exit"]
            self.assertEqual(ended["kind"], "not started")
            self.assertEqual(ended["text"],
                             f"job {other}, which it was waiting for, did not complete")
            self.assertIsNone(ended["peak_ram_mib"])
            self.assertIsNone(ended["code"])

    def test_hold_release_priority_cancel(self):
        number = self.admin.submit(command="true", hold=True, priority=1)
        self.assertEqual(self.admin.job(number)["why"]["reason"], "held")
        answer = self.admin.ask("PATCH", f"/jobs/{number}/priority", {"priority": "high"})
        self.assertEqual(answer.json["job"]["priority"], 3)
        self.assertEqual(self.admin.post(f"/jobs/{number}/hold").status, 409)
        answer = self.admin.ask("DELETE", f"/jobs/{number}")
        self.assertEqual((answer.status, answer.json["job"]["state"]), (202, "canceled"))
        self.assert_problem(self.admin.ask("DELETE", f"/jobs/{number}"), 409, "has already ended")

    def test_canceling_a_running_job_ends_all_of_it(self):
        number = self.admin.submit(command="(trap '' TERM; sleep 600) & sleep 600", grace="300ms")
        self.admin.wait(number, "running")
        answer = self.admin.ask("DELETE", f"/jobs/{number}")
        self.assertEqual((answer.status, answer.json["job"]["canceling"]), (202, True))
        job = self.admin.wait(number, "canceled")
        self.assertEqual(job["exit"]["kind"], "killed")
        gpus = self.admin.get("/gpus").json["gpus"]
        self.assertFalse([gpu for gpu in gpus
                          if any(h.get("job") == number for h in gpu["holders"])])

    def test_time_limit(self):
        number = self.admin.submit(command="sleep 600", time_limit="300ms", grace="1s")
        self.assertEqual(self.admin.wait(number, "failed")["exit"]["kind"], "time limit")

    def test_what_cannot_be_run_says_so(self):
        number = self.admin.submit(command=["/nonexistent/program"])
        job = self.admin.wait(number, "failed")
        self.assertEqual(job["exit"]["kind"], "not started")
        self.assertIn("/nonexistent/program", job["exit"]["text"])

    def test_a_retry_after_a_failure(self):
        self.admin.ask("PUT", "/policy", {"retry_base": "50ms"})
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.geteuid() else None):
            number = self.admin.submit(command="test $ACRE_ATTEMPT = 2", max_retries=3)
            job = self.admin.wait(number, "completed")
        self.assertEqual((job["attempt"], job["retries"]), (2, 1))

    def test_a_full_gpu_is_recognised_and_less_is_asked_for(self):
        self.admin.ask("PUT", "/policy", {"retry_base": "50ms"})
        number = self.admin.submit(
            command="echo RuntimeError: CUDA out of memory. >&2; test $ACRE_ATTEMPT = 2",
            gpus=0.8, max_retries=1, smaller_on_oom=True)
        job = self.admin.wait(number, "completed")
        self.assertEqual((job["attempt"], job["request"]["share_milli"]), (2, 400))
        number = self.admin.submit(command="echo CUDA out of memory; exit 3", gpus=1)
        end = self.admin.wait(number, "failed")["exit"]
        self.assertEqual((end["kind"], end["code"], end["text"]),
                         ("out of memory", 3, "CUDA out of memory"))

    def test_a_submission_that_can_never_fit_is_refused(self):
        for body, part in [({"gpus": 9}, "never fits"), ({"model": "Z9"}, "no GPU here is a 'Z9'"),
                           ({"labels": ["rack=none"]}, ""), ({"gpu_memory": "1TiB"}, "")]:
            with self.subTest(body=body):
                self.assert_problem(self.admin.post("/jobs", {"command": "true", **body}), 409,
                                    part)

    def test_lists_are_paged(self):
        numbers = [self.admin.submit(command="true", hold=True, name="paged") for _ in range(7)]
        for query in ("name=paged", "name=paged&all=1"):
            seen, cursor, pages = [], None, 0
            while pages == 0 or cursor is not None:
                path = f"/jobs?{query}&limit=3" + (f"&cursor={cursor}" if cursor else "")
                answer = self.admin.get(path).json
                seen += [job["id"] for job in answer["jobs"]]
                cursor = answer["next"]
                pages += 1
            self.assertEqual(sorted(seen), numbers, query)
            self.assertGreaterEqual(pages, 3)
        self.assert_problem(self.admin.get("/jobs?cursor=x"), 400, "cursor: 'x'")
        self.assert_problem(self.admin.get("/jobs?limit=0"), 400, "limit")
        self.assert_problem(self.admin.get("/jobs?color=red"), 400, "color")
        for number in numbers:
            self.admin.ask("DELETE", f"/jobs/{number}")
        self.assertEqual(self.admin.get("/jobs?name=paged").json["jobs"], [])

    def test_events_come_and_can_be_resumed(self):
        stream = self.admin.events()
        number = self.admin.submit(command="true")
        seen = []
        for identity, name, data in stream:
            self.assertEqual(name, "job")
            if data["job"] == number:
                seen.append((identity, data["kind"], data["state"]))
            if data["job"] == number and data["kind"] == "job completed":
                break
        stream.close()
        self.assertEqual([kind for _, kind, _ in seen],
                         ["job submitted", "job scheduled", "job launched", "job started",
                          "job completed"])
        again = self.admin.events(f"/events?job={number}", last=seen[1][0])
        resumed = [next(again) for _ in range(3)]
        again.close()
        self.assertEqual([identity for identity, _, _ in resumed], [i for i, _, _ in seen[2:]])
        old = self.admin.events("/events", last=1)
        self.assertEqual(next(old)[1], "reset")
        old.close()


class Seeds(api.TestCase):
    """The routes and shapes of earlier clients."""

    def test_gpu_status(self):
        for path in ("/cluster/gpu-status", "/gpu/status"):
            status = self.admin.get(path).json["gpuResources"]
            self.assertEqual((status["totalGpus"], len(status["nodes"])), (16, 2))
            node = status["nodes"][0]
            self.assertEqual((node["nodeId"], node["gpuCount"], node["gpuType"]),
                             ("gpu-a", 8, "H100"))
            self.assertEqual(node["gpus"][3]["id"], 3)
            self.assertTrue(node["gpus"][3]["simulated"])
            self.assertIsNone(node["gpus"][3]["utilization"])  # unknown, not 0

    def test_allocate_and_release(self):
        body = {"job_id": "run-7", "gpu_count": 2, "memory_gb": 40}
        answer = self.admin.post("/cluster/gpu-allocate", body)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(len(answer.json["allocatedGpus"]), 2)
        number = int(answer.json["id"])
        self.assert_problem(self.admin.post("/cluster/gpu-allocate", body), 409, "run-7")
        self.assertEqual(self.admin.wait(number, "running")["external"], True)
        self.assertEqual(self.admin.get("/gpu/status").json["gpuResources"]["allocatedGpus"], 2)
        answer = self.admin.post("/cluster/gpu-release", {"job_id": "run-7"})
        self.assertEqual((answer.status, answer.json["released"]), (200, True))
        self.assertEqual(self.admin.job(number)["state"], "completed")
        self.assert_problem(self.admin.post("/cluster/gpu-release", {"job_id": "run-7"}), 404)
        self.assert_problem(self.admin.post("/cluster/gpu-allocate",
                                            {"job_id": "x", "gpu_count": 9}), 409)
        self.assertEqual(self.admin.get("/jobs").json["jobs"], [])  # nothing is left waiting

    def test_complete(self):
        answer = self.admin.post("/cluster/gpu-allocate", {"job_id": 12, "gpu_count": 1})
        number = answer.json["id"]
        answer = self.admin.post(f"/jobs/{number}/complete",
                                 {"status": "failed", "exit_code": None})
        self.assertEqual(answer.status, 200, answer)
        job = self.admin.job(number)
        self.assertEqual((job["state"], job["exit"]["code"], job["name"]), ("failed", 1, "12"))
        own = self.admin.submit(command="sleep 600")
        self.admin.wait(own, "running")
        self.assert_problem(self.admin.post(f"/jobs/{own}/complete"), 409, "runs on this cluster")
        self.admin.ask("DELETE", f"/jobs/{own}")
        self.admin.wait(own, "canceled")

    def test_the_queue(self):
        answer = self.admin.post("/queue/submit", {"command": "true", "gpu_count": 1,
                                                   "memory_gb": 40, "priority": 2,
                                                   "estimated_duration": 60, "hold": True})
        self.assertEqual(answer.status, 201, answer)
        number = answer.json["job"]["id"]
        queue = self.admin.get("/queue").json
        row = [job for job in queue["queuedJobs"] if job["id"] == str(number)][0]
        self.assertEqual((row["priority"], row["requestedGpus"]), (2, 1.0))
        self.assertTrue(row["queuedAt"].endswith("Z"))
        self.assertGreaterEqual(queue["statistics"]["totalQueued"], 1)
        answer = self.admin.ask("PATCH", f"/queue/{number}/priority", {"priority": 3})
        self.assertEqual(answer.json["job"]["priority"], 3)
        self.assertEqual(self.admin.ask("DELETE", f"/queue/{number}").status, 202)
        statistics = self.admin.get("/queue/statistics").json
        self.assertEqual(statistics["totalQueued"], 0)

    def test_the_orchestrator_stops_and_starts(self):
        self.assertEqual(self.admin.post("/orchestrator/stop").json["running"], False)
        number = self.admin.submit(command="true")
        self.assertEqual(self.admin.job(number)["why"]["reason"], "paused")
        self.assertEqual(self.admin.get("/orchestrator/status").json["queuedJobs"], 1)
        self.assertEqual(self.admin.post("/orchestrator/start").json["running"], True)
        self.admin.wait(number, "completed")

    def test_policies(self):
        for path in ("/orchestrator/policies", "/orchestrator/policy", "/policy"):
            self.assertIn("policy", self.admin.get(path).json)
        answer = self.admin.ask("PUT", "/orchestrator/policies",
                                {"policy_config": {"policy": "sjf"}})
        self.assertEqual((answer.status, answer.json["policy"]), (200, "sjf"))
        problem = self.assert_problem(self.admin.ask("PUT", "/policy", {"policy": "chaos"}), 400,
                                      "chaos", "fair-share")
        self.assertEqual(problem["field"], "policy")
        self.assertEqual(self.admin.get("/policy").json["policy"], "sjf")


class Cluster(api.TestCase):
    def test_a_drained_gpu_takes_nothing_and_comes_back(self):
        gpu = "sim:gpu-a%2F0"
        answer = self.admin.post(f"/gpus/{gpu}/drain", {"reason": "new fan"})
        self.assertEqual((answer.status, answer.json["gpu"]["reason"]), (200, "new fan"))
        self.assertEqual(self.admin.get("/stats").json["gpus"]["drained"], 1)
        self.assertEqual(self.admin.post(f"/gpus/{gpu}/undrain").json["gpu"]["drained"], False)
        self.assert_problem(self.admin.post("/gpus/none/drain"), 404, "none")
        self.assert_problem(self.admin.post("/nodes/none/drain"), 404, "none")

    def test_a_gpu_is_not_taken_for_a_node(self):
        self.assert_problem(self.admin.post("/nodes/sim:gpu-b%2F3/drain"), 404,
                            "there is no node 'sim:gpu-b/3'; it is a GPU")

    def test_a_drained_node_says_why(self):
        self.assertEqual(self.admin.post("/nodes/gpu-b/drain", {"reason": "moving"}).status, 200)
        node = [n for n in self.admin.get("/nodes").json["nodes"] if n["name"] == "gpu-b"][0]
        self.assertEqual((node["drained"], node["reason"], node["free_milli"]),
                         (True, "moving", 0))
        self.assertEqual(self.admin.post("/nodes/gpu-b/undrain").status, 200)

    def test_reservations(self):
        answer = self.admin.post("/reservations", {"gpus": 2, "start": "1h", "duration": "1h"})
        self.assertEqual(answer.status, 201, answer)
        made = answer.json["reservation"]
        self.assertEqual((made["state"], len(made["devices"])), ("pending", 2))
        now = self.admin.post("/reservations", {"devices": ["sim:gpu-b/7"], "duration": "2s"})
        self.assertEqual(now.status, 201, now)
        self.assertEqual(now.json["reservation"]["state"], "active", now)
        number = self.admin.submit(command="echo in", gpus=1,
                                   reservation=now.json["reservation"]["id"])
        job = self.admin.wait(number, "completed")
        listed = self.admin.get("/reservations").json["reservations"]
        self.assertIn(made["id"], [row["id"] for row in listed])
        answer = self.admin.ask("DELETE", f"/reservations/{made['id']}")
        self.assertEqual(answer.json["reservation"]["state"], "cancelled")
        for body in ({"gpus": 1}, {"duration": "1h"}, {"gpus": 1, "devices": ["x"], "duration": 1},
                     {"gpus": 1, "start": "2001-01-01T00:00:00Z", "duration": "1h"},
                     {"gpus": 1, "duration": "400d"}):
            self.assert_problem(self.admin.post("/reservations", body), 400)
        self.assert_problem(self.admin.post("/reservations", {"gpus": 17, "duration": "1h"}), 409,
                            "gpus: 17")
        self.assert_problem(self.admin.post("/reservations", {"gpus": 1, "duration": "0s"}), 400,
                            "duration: the reservation would end before it starts")

    def test_jobs_end_with_their_reservation_and_say_so(self):
        made = self.admin.post("/reservations", {"gpus": 2, "duration": "1h"}).json["reservation"]
        self.assert_problem(self.admin.post("/jobs", {"command": "true", "gpus": 2, "nodes": 2,
                                                      "reservation": made["id"]}), 409,
                            f"reservation {made['id']} has 2 GPUs; this job asks for 4")
        number = self.admin.submit(command="sleep 600", gpus=2, reservation=made["id"])
        self.admin.wait(number, "running")
        self.assertEqual(self.admin.ask("DELETE", f"/reservations/{made['id']}").status, 200)
        ended = self.admin.wait(number, "failed")["exit"]
        self.assertEqual(ended["text"], f"its reservation {made['id']} has ended")

    def test_quotas_hold(self):
        self.assertEqual(self.admin.ask("PUT", "/quotas/user:bob", {"queued": 2}).status, 200)
        bob = self.daemon.user("bob")
        for _ in range(2):
            bob.submit(command="true", hold=True)
        self.assert_problem(bob.post("/jobs", {"command": "true", "hold": True}), 403, "bob")
        self.assertEqual(self.admin.get("/quotas").json["quotas"][0]["who"], "user:bob")
        self.assertEqual(self.admin.ask("DELETE", "/quotas/user:bob").status, 200)
        self.assert_problem(self.admin.ask("PUT", "/quotas/bob", {"queued": 2}), 400, "who")
        bob.submit(command="true", hold=True)

    def test_usage_and_statistics(self):
        number = self.admin.submit(command="sleep 0.1")
        self.admin.wait(number, "completed")
        account = [row for row in self.admin.get("/usage").json["accounts"]
                   if row["user"] == "root" or row["user"] != "bob"][0]
        self.assertGreaterEqual(account["charged_gpu_hours"], 0)
        stats = self.admin.get("/stats").json
        self.assertGreaterEqual(stats["jobs"]["completed"], 1)
        self.assertTrue(stats["simulated"])


class Restart(unittest.TestCase):
    """A daemon that dies and comes back."""

    def test_running_jobs_survive_and_their_ends_arrive(self):
        with api.Daemon() as one:
            admin = one.admin
            long = admin.submit(command="sleep 6; echo done; exit 5", name="long")
            brief = admin.submit(command="sleep 0.3; exit 4")
            queued = admin.submit(command="true", hold=True)
            for number in (long, brief):
                admin.wait(number, "running")
            self.assertEqual(admin.ask("PUT", "/policy", {"policy": "fcfs"}).status, 200)
            one.child.kill()
            one.child.wait()
            time.sleep(0.5)  # the second job ends while nobody is there
            one.start()
            self.assertEqual(admin.job(long)["state"], "running")
            self.assertEqual(admin.job(queued)["state"], "queued")
            self.assertEqual(admin.get("/policy").json["policy"], "fcfs")
            self.assertEqual(admin.wait(brief, "failed")["exit"]["code"], 4)
            job = admin.wait(long, "failed")
            self.assertEqual((job["exit"]["code"], job["attempt"]), (5, 1))
            self.assertEqual(admin.get(f"/jobs/{long}/logs").body, b"done\n")
            after = admin.submit(command="true")
            self.assertGreater(after, queued)
            admin.wait(after, "completed")
            self.assertEqual(one.stop(), 0)

    def test_a_graceful_stop_answers_and_leaves_jobs_alone(self):
        with api.Daemon() as one:
            number = one.admin.submit(command="sleep 0.6; exit 6")
            one.admin.wait(number, "running")
            self.assertEqual(one.stop(), 0)
            self.assertFalse(os.path.exists(one.socket))
            one.start()
            self.assertEqual(one.admin.wait(number, "failed")["exit"]["code"], 6)

    def test_tokens_and_the_audit_trail_survive(self):
        with api.Daemon() as one:
            token = one.admin_token
            self.assertEqual(api.Client(one.port, token).get("/audit").status, 200)
            one.stop()
            one.start()
            client = api.Client(one.port, token)
            deadline = time.monotonic() + api.TIMEOUT_S
            while client.target != one.port and time.monotonic() < deadline:
                client = api.Client(one.port, token)
            with open(one.log.name, encoding="utf-8") as log:
                said = log.read()
            self.assertNotIn(token, said)  # it is in a file
            answer = one.admin.get("/audit/verify").json
            self.assertEqual((answer["ok"], answer["text"]), (True, ""))
            self.assertGreaterEqual(answer["count"], 1)
            with open(os.path.join(one.folder, "state", "acre.db"), "rb") as database:
                self.assertNotIn(token.split("_", 2)[2].encode(), database.read())

    def test_settings_are_read_again(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("# rules\nrate = 1000\nlog-level = info\n")
            file.flush()
            with api.Daemon("--config", file.name) as one:
                file.write("operators = ada\n")
                file.flush()
                one.child.send_signal(signal.SIGHUP)
                deadline = time.monotonic() + api.TIMEOUT_S
                while "settings read again" not in one.said() and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertIn("settings read again", one.said())
                file.write("nonsense = 1\n")
                file.flush()
                one.child.send_signal(signal.SIGHUP)
                while "keeping the old settings" not in one.said() and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertIn("unknown setting 'nonsense'", one.said())
                self.assertEqual(one.admin.get("/health/ready").status, 200)
