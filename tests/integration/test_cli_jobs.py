"""Jobs from the command line: submit, run, queue, show, why, logs, cancel, hold, release, priority.

The real daemon and real processes; the GPUs are simulated (JOB-1 ... JOB-6, POL-9, UI-2)."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon
import program


class Submit(daemon.TestCase):
    def test_a_person_is_told_what_happens(self):
        result = self.daemon.run("submit", "--gpus", "0.5", "--", "true")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"\Ajob \d+ \w+.*\n\Z")

    def test_quiet_is_the_id_alone(self):
        result = self.daemon.run("submit", "-q", "--", "true")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"\A\d+\n\Z")

    def test_every_option_arrives(self):
        first = self.daemon.submit("--", "true")
        job = self.daemon.json(
            "submit", "--gpus", "2", "--gpu-memory", "20GiB", "--nodes", "2", "--cpus", "1.5",
            "--memory", "1GiB", "--model", "H100", "--label", "rack=r1", "--priority", "high",
            "--time", "2h", "--estimate", "10m", "--retries", "3", "--hold", "--begin", "1h",
            "--after", f"any:{first}", "--name", "all", "--project", "vision", "--directory",
            "/", "--env", "A=1", "--no-network", "--warn", "1m", "--warn-signal", "TERM",
            "--grace", "5s", "--no-preempt", "--smaller-on-oom", "--isolation", "none",
            "--", "sh", "-c", "true # and more")["job"]
        asked = job["request"]
        self.assertEqual((asked["nodes"], asked["gpus"], asked["gpu_memory_mib"]), (2, 2, 20480))
        self.assertEqual((asked["cpu_milli"], asked["ram_mib"]), (1500, 1024))
        self.assertEqual((asked["models"], asked["labels"]), (["H100"], ["rack=r1"]))
        self.assertEqual((job["priority"], job["name"], job["project"]), (3, "all", "vision"))
        self.assertEqual((job["time_limit_ms"], job["estimate_ms"]), (7200000, 600000))
        self.assertEqual((job["max_retries"], job["held"], job["state"]), (3, True, "queued"))
        self.assertIn("sh -c true # and more", job["command"])

    def test_an_array_is_many_jobs(self):
        result = self.daemon.run("submit", "--quiet", "--array", "0-3%2", "--", "true")
        self.assert_ended(result)
        ids = result.stdout.split()
        self.assertEqual(len(ids), 4)
        self.assertEqual(self.daemon.job(ids[2])["array"]["index"], 2)
        self.assertRegex(self.daemon.run("submit", "--array", "1-2", "--", "true").stdout,
                         r"array \d+ queued, 2 jobs: \d+ to \d+")

    def test_an_array_is_changed_as_a_whole(self):
        ids = self.daemon.run("submit", "--quiet", "--hold", "--array", "1-3", "--",
                              "sleep", "60").stdout.split()
        array = ids[0]

        def change(*words):
            result = self.daemon.run(words[0], "--array", array, *words[1:])
            self.assert_ended(result)
            return result.stdout

        self.assertEqual(change("priority", "low"), f"array {array}: 3 jobs changed\n")
        self.assertEqual(self.daemon.job(ids[2])["priority"], 1)
        self.assert_ended(self.daemon.run("cancel", ids[1]))
        self.assertEqual(change("release"), f"array {array}: 2 jobs released\n")
        self.assertEqual(self.daemon.run("cancel", "--array", "--quiet", array).stdout.split(),
                         [ids[0], ids[2]])
        self.assert_ended(self.daemon.run("hold", "--array", "999999"), 4, "no array 999999")
        self.assert_ended(self.daemon.run("hold", "--array", "x"), 2, "array")

    def test_wait_exits_with_the_jobs_status(self):
        result = self.daemon.run("submit", "--wait", "--", "sh", "-c", "exit 7")
        self.assertEqual(result.returncode, 7, result)
        self.assertIn("failed (status 7)", result.stderr)

    def test_the_environment_is_clean_but_for_what_is_named(self):
        result = self.daemon.run("run", "--env", "SET=given", "--env", "PASSED", "--", "env",
                                 PASSED="mine", LEFT="behind")
        self.assert_ended(result)
        self.assertIn("SET=given\n", result.stdout)
        self.assertIn("PASSED=mine\n", result.stdout)
        self.assertNotIn("LEFT=", result.stdout)
        self.assertIn("LEFT=behind\n",
                      self.daemon.run("run", "--export", "--", "env", LEFT="behind").stdout)
        token = self.daemon.run("token", "create").stdout.strip()  # is kept with no job by chance
        self.assertNotIn("ACRE_TOKEN", self.daemon.run("run", "--export", "--", "env",
                                                       ACRE_TOKEN=token).stdout)
        self.assertIn(f"ACRE_TOKEN={token}", self.daemon.run(
            "run", "--export", "--env", "ACRE_TOKEN", "--", "env", ACRE_TOKEN=token).stdout)

    def test_it_runs_here(self):
        # Not in /tmp: a job has one of its own.
        with tempfile.TemporaryDirectory(dir=os.path.dirname(program.ACRE)) as folder:
            child = subprocess.run([program.ACRE, "run", "--", "pwd"], cwd=folder, text=True,
                                   stdout=subprocess.PIPE, timeout=program.TIMEOUT_S,
                                   env=program.environment(ACRE_SERVER=self.daemon.socket))
            self.assertEqual(child.stdout.strip(), os.path.realpath(folder))

    def test_bad_requests_are_refused_before_anything_is_sent(self):
        for words, message in [
                ("--gpus 0.05 -- true", "--gpus: '0.05' is not a number of GPUs; accepted: whole"),
                ("--gpus 1000000000 -- true", "--gpus: '1000000000'"),
                ("--gpus x -- true", "--gpus: 'x'"),
                ("--time 5 -- true", "--time: '5'"),
                ("--memory much -- true", "--memory: 'much'"),
                ("--priority urgent -- true", "--priority: unknown value 'urgent'"),
                ("--env 1A=2 -- true", "--env: '1A=2' is not a variable"),
                ("--env ACRE_UNSET_HERE -- true", "ACRE_UNSET_HERE is not set in your environment"),
                ("--begin noon -- true", "--begin: 'noon' is not a time"),
                ("--gpsu 1 -- true", "did you mean --gpus?"),
                # "\udcff" is how Python says the byte 0xff, which is no UTF-8
                ("--env A=\udcff -- true", r"A: '\xff' is not valid UTF-8"),
                (f"--env {'A' * 256}=1 -- true", "at most 255 bytes; this one has 256"),
                ("--label a=\udcff -- true", r"labels: 'a=\xff' is not valid UTF-8"),
                ("--model H100,\udcff -- true", r"model: 'H100,\xff' is not valid UTF-8"),
                ("--name \udcff -- true", r"name: '\xff' is not valid UTF-8"),
                ("--directory /\udcff -- true", r"directory: '/\xff' is not valid UTF-8"),
                ("--", "no command after --"),
                ("", "0 arguments; accepted: 1 or more"),
                ("nothing-here.sh", "no such script; to run a command, use: acre submit"),
                ("README.md", "not a script (it does not start with #!)"),
                ("scripts/demo x", "a script takes no arguments")]:
            with self.subTest(words=words):
                result = self.daemon.run("submit", *words.split())
                self.assertIn(result.returncode, (2, 4), result)
                self.assertIn(message, result.stderr)
                self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1))

    def test_what_the_daemon_refuses_is_told_with_its_code(self):
        for words, status, message in [
                ("--gpus 64 -- true", 6, "64"),
                ("--after ok:999999 -- true", 4, "999999"),
                ("--array 9-1 -- true", 2, "array"),
                ("--model Z9000 -- true", 6, "model")]:
            with self.subTest(words=words):
                result = self.daemon.run("submit", *words.split())
                self.assertEqual(result.returncode, status, result)
                self.assertRegex(result.stderr, r"\Aacre: .*\n\Z")
                self.assertIn(message, result.stderr)


MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    metadata:
      annotations:
        kaiwo.ai/gpu-fraction: "0.5"
        kaiwo.ai/gpu-memory: 4096
    spec:
      containers:
      - resources: {limits: {cpu: 4, nvidia.com/gpu: 1}}
"""


class Annotations(daemon.TestCase):
    """ALC-5, from a file to the request of the job."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, text, name="pod.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def request(self, *words, **changes):
        result = self.daemon.run("submit", "--hold", "-q", *words, "--", "true", **changes)
        self.assert_ended(result)
        return self.daemon.job(result.stdout.strip())["request"]

    def test_a_manifest_and_a_map_in_yaml_and_json(self):
        asked = self.request("--annotations", self.write(MANIFEST))
        self.assertEqual((asked["gpus"], asked["share_milli"], asked["gpu_memory_mib"]),
                         (1, 500, 4096))
        self.assertEqual(asked["vendor"], "NVIDIA")
        asked = self.request("--annotations",
                             self.write('{"nvidia.com/gpu": 2}', "map.json"))
        self.assertEqual((asked["gpus"], asked["share_milli"]), (2, 1000))
        asked = self.request("--annotations", self.write("kaiwo.ai/gpu-fraction: 0.25"),
                             "--gpus", "0.25", "--isolation", "mps")
        self.assertEqual((asked["share_milli"], asked["isolation"]), (250, "mps"))

    def test_standard_input(self):
        child = subprocess.run([program.ACRE, "submit", "--hold", "-q", "--annotations", "-", "--",
                                "true"], input=MANIFEST, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=program.TIMEOUT_S,
                               env=program.environment(ACRE_SERVER=self.daemon.socket))
        self.assertEqual((child.returncode, child.stderr), (0, ""))
        self.assertEqual(self.daemon.job(child.stdout.strip())["request"]["share_milli"], 500)

    def test_what_is_refused(self):
        for text, status, says in [
                ("kaiwo.ai/gpu-fraction: 2", 2,
                 "annotations: kaiwo.ai/gpu-fraction: '2' is not a valid share; accepted: 0.1"),
                ("kaiwo.ai/gpu-isolation: walls\nnvidia.com/gpu: 1", 2, "'walls' is not valid"),
                ("nothing: here", 2, "nothing there asks for a GPU"),
                ("amd.com/gpu: 500", 6, "vendor: no GPU here is from 'AMD'"),
                ("kaiwo.ai/gpu-fraction: 0.5\nkaiwo.ai/gpu-isolation: mig", 6, "never fits"),
                ("a: [", 2, "invalid YAML: did not find"),
                ("- a", 2, "accepted: a mapping"),
                ("{\"a\": ", 2, "pod.yaml"),
                ("a: &b 1\nc: *b", 2, "pod.yaml:2: an alias")]:
            with self.subTest(text=text):
                self.assert_ended(self.daemon.run("submit", "--annotations", self.write(text), "--",
                                                  "true"), status, says)
        self.assert_ended(self.daemon.run("submit", "--gpus", "1", "--annotations",
                                          self.write(MANIFEST), "--", "true"), 2,
                          "gpus: 1 contradicts kaiwo.ai/gpu-fraction 0.5")
        self.assert_ended(self.daemon.run("submit", "--annotations", "/nowhere/x.yaml", "--",
                                          "true"), 4, "--annotations: /nowhere/x.yaml")


class Scripts(daemon.TestCase):
    def script(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_directives_are_options_and_flags_win(self):
        path = self.script("#!/bin/sh\n#ACRE --gpus 0.5 --name mine\n#ACRE --env A=1\n"
                           "echo \"$A on $ACRE_JOB_NAME\"\n")
        result = self.daemon.run("run", path)
        self.assert_ended(result)
        self.assertEqual(result.stdout, "1 on mine\n")
        job = self.daemon.json("submit", "--gpus", "2", path)["job"]
        self.assertEqual((job["request"]["gpus"], job["name"]), (2, "mine"))

    def test_a_script_is_called_by_its_name(self):
        path = self.script("#!/bin/sh\ntrue\n")
        self.assertEqual(self.daemon.json("submit", path)["job"]["name"], os.path.basename(path))

    def test_a_bad_directive_names_its_line(self):
        path = self.script("#!/bin/sh\n\n#ACRE --gpus 0.01\n")
        result = self.daemon.run("submit", path)
        self.assert_ended(result, 2, ":3: --gpus: '0.01'")

    def test_interpreters_work(self):
        path = self.script("#!/usr/bin/env python3\nprint('from', 'python')\n")
        self.assertEqual(self.daemon.run("run", path).stdout, "from python\n")


class Run(daemon.TestCase):
    def test_output_and_status_are_the_jobs(self):
        result = self.daemon.run("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((result.returncode, result.stdout), (3, "out\n"))
        self.assertIn("err\n", result.stderr)
        self.assertRegex(result.stderr, r"acre: job \d+ failed \(status 3\)")

    def test_success_says_nothing_more(self):
        result = self.daemon.run("run", "--quiet", "--", "sh", "-c", "echo err >&2")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", "err\n"))

    def test_a_signal_is_128_and_more(self):
        result = self.daemon.run("run", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(result.returncode, 137, result)

    def test_a_command_that_is_not_there(self):
        result = self.daemon.run("run", "--", "/nonexistent/program")
        self.assertIn(result.returncode, (126, 127), result)

    def test_much_output_arrives_whole(self):
        result = self.daemon.run("run", "--", "seq", "200000")
        self.assert_ended(result)
        self.assertEqual(result.stdout, "".join(f"{i}\n" for i in range(1, 200001)))

    def test_a_retry_is_followed(self):
        self.daemon.run("policy", "set", "retry_base=100ms")
        result = self.daemon.run("run", "--retries", "1", "--", "sh", "-c",
                                 "echo try $ACRE_ATTEMPT; [ $ACRE_ATTEMPT = 2 ]")
        self.assertEqual((result.returncode, result.stdout), (0, "try 1\ntry 2\n"), result)

    def test_an_interrupt_cancels(self):
        child = subprocess.Popen([program.ACRE, "run", "--", "sh", "-c", "echo up; sleep 300"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=program.environment(ACRE_SERVER=self.daemon.socket))
        self.assertEqual(child.stdout.readline(), "up\n")
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=program.TIMEOUT_S)
        self.assertEqual(child.returncode, 130, said)
        number = re.search(r"canceling job (\d+)", said)[1]
        self.assertEqual(self.daemon.job(number)["state"], "canceled")

    def test_why_a_job_ended(self):
        for words, told in [(("sh", "-c", "exit 3"), "it has failed (status 3)."),
                            (("true",), "it has completed (status 0)."),
                            (("/absent",), "it has failed (not started: command /absent:")]:
            number = self.daemon.submit("--", *words)
            self.daemon.wait_for(number, "failed", "completed")
            self.assertIn(told, self.daemon.run("why", number).stdout)

    def test_a_job_that_waits_for_its_next_try_is_shown_when_that_starts(self):
        number = self.daemon.submit("--retries", "1", "--gpus", "0.1", "--name", "again", "--",
                                    "false")
        deadline = time.monotonic() + program.TIMEOUT_S
        while self.daemon.job(number)["retries"] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        shown = self.daemon.run("queue").stdout
        self.assertRegex(shown, rf"(?m)^ *{number} +again .* in \d+s +1 +try 1 of 2 failed")

    def test_arrays_are_not_followed(self):
        self.assert_ended(self.daemon.run("run", "--array", "0-1", "--", "true"), 2,
                          "--array: 'acre run' follows a single job")


class Waiting(daemon.TestCase):
    """The cluster is full; what waits is explained."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for _ in range(2):
            number = cls.daemon.submit("--gpus", "8", "--time", "1h", "--name", "filler", "--",
                                       "sleep", "600")
            cls.daemon.wait_for(number, "running")
        cls.waits = cls.daemon.submit("--gpus", "2", "--name", "waits", "--", "true")

    def test_why_is_a_paragraph(self):
        result = self.daemon.run("why", self.waits)
        self.assert_ended(result)
        self.assertRegex(result.stdout, rf"\AJob {self.waits} is waiting \([a-z-]+\): .*\n\Z")
        self.assertIn("It starts in about", result.stdout)
        self.assertIn("is not waiting: it is running on gpu-", self.daemon.run("why", "1").stdout)
        answer = self.daemon.json("why", self.waits)
        self.assertIn("reason", answer["why"])
        self.assertTrue(answer["when"]["known"])

    def test_what_others_wrote_reaches_the_terminal_as_text(self):
        number = self.daemon.submit("--hold", "--", "printf", "a\\.b\n\x1b[2J")
        for command in (("queue",), ("show", number)):
            shown = self.daemon.run(*command).stdout
            self.assertIn(r"printf a\.b\n\x1b[2J", shown)
            self.assertNotIn("\x1b[2J", shown)
        result = self.daemon.run("submit", "--name", "a\x1bb", "--", "true")
        self.assertIn(r"'a\x1bb'", result.stderr)

    def test_the_queue_is_a_table(self):
        result = self.daemon.run("queue")
        self.assert_ended(result)
        head, *lines = result.stdout.splitlines()
        self.assertEqual(head.split()[:5], ["ID", "NAME", "USER", "PROJECT", "STATE"])
        why = self.daemon.json("why", self.waits)["why"]["text"]
        self.assertTrue(any(re.match(rf" *{self.waits} +waits .*queued .*in \d+m .*", line) and
                            line.endswith(why[-20:]) for line in lines), result.stdout)
        self.assertIn("SIMULATED", result.stdout)
        ids = self.daemon.run("queue", "--quiet").stdout.split()
        self.assertIn(self.waits, ids)
        self.assertEqual(self.daemon.run("queue", "-q", "--state", "running").stdout, "1\n2\n")
        self.assertEqual(self.daemon.run("queue", "-q", "--name", "waits").stdout,
                         f"{self.waits}\n")
        self.assertEqual(self.daemon.json("queue", "--user", "nobody-here")["jobs"], [])

    def test_tables_fit_the_terminal(self):
        for columns in (60, 80, 120, 200):
            for words in (["queue"], ["queue", "--all"], ["nodes"], ["gpus", "--cluster"],
                          ["show", "1"], ["why", self.waits]):
                with self.subTest(columns=columns, words=words):
                    result = self.daemon.on_terminal(*words, columns=columns)
                    self.assertEqual(result.returncode, 0, result)
                    plain = program.ESCAPE.sub("", result.stdout)
                    for line in plain.splitlines():
                        self.assertLessEqual(len(line), columns, line)

    def test_watching_ends_when_told(self):
        result = self.daemon.run("queue", "--watch", "--count", "2")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"job 1 +filler +running on gpu-")
        shown = self.daemon.on_terminal("queue", "--watch", "--count", "2", "--interval", "50ms")
        self.assertEqual(shown.returncode, 0, shown)
        self.assertIn("\x1b[H\x1b[2J", shown.stdout)

    def test_hold_release_and_priority(self):
        number = self.daemon.submit("--gpus", "1", "--", "true")
        self.assertEqual(self.daemon.run("hold", number).stdout, f"job {number} held\n")
        self.assertIn("(held)", self.daemon.run("why", number).stdout)
        self.assertEqual(self.daemon.run("release", number).stdout, f"job {number} queued\n")
        self.assertEqual(self.daemon.run("priority", number, "high").stdout,
                         f"job {number} now has priority 3\n")
        self.assertEqual(self.daemon.job(number)["priority"], 3)
        self.assert_ended(self.daemon.run("priority", number, "huge"), 2, "unknown level 'huge'")
        self.assert_ended(self.daemon.run("priority", "1", "low"), 5, "acre: ")
        self.assertEqual(self.daemon.run("cancel", number).stdout, f"job {number} canceled\n")
        self.assert_ended(self.daemon.run("cancel", number), 5, "acre: ")
        self.assert_ended(self.daemon.run("hold", number), 5, "acre: ")

    def test_all_is_done_that_can_be(self):
        one, two = (self.daemon.submit("--", "true") for _ in range(2))
        result = self.daemon.run("cancel", "--quiet", one, "999999", "x", two)
        self.assertEqual((result.returncode, result.stdout), (4, f"{one}\n{two}\n"))
        self.assertIn("999999", result.stderr)
        self.assertIn("job: 'x'", result.stderr)

    def test_unknown_jobs(self):
        for command in ("show", "why", "logs", "cancel", "hold", "release"):
            with self.subTest(command=command):
                self.assert_ended(self.daemon.run(command, "999999"), 4, "acre: ")
                self.assert_ended(self.daemon.run(command, "0"), 2, "job: '0'")


class Logs(daemon.TestCase):
    def test_both_streams_go_where_they_came_from(self):
        number = self.daemon.submit("--wait", "--", "sh", "-c", "echo out; echo err >&2")
        result = self.daemon.run("logs", number)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "out\n", "err\n"))
        result = self.daemon.run("logs", "--stream", "stderr", number)
        self.assertEqual((result.stdout, result.stderr), ("err\n", ""))
        result = self.daemon.run("logs", "--stream", "stdout", "--tail", "2", number)
        self.assertEqual(result.stdout, "t\n")

    def test_following_ends_with_the_job(self):
        number = self.daemon.submit("--", "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done")
        self.daemon.wait_for(number, "running", "completed")
        result = self.daemon.run("logs", "--follow", number)
        self.assertEqual((result.returncode, result.stdout), (0, "1\n2\n3\n"), result)

    def test_each_run_has_its_own(self):
        self.daemon.run("policy", "set", "retry_base=100ms")
        number = self.daemon.submit("--retries", "1", "--", "sh", "-c",
                                    "echo try $ACRE_ATTEMPT; exit 1")
        self.daemon.wait_for(number, "failed")
        self.assertEqual(self.daemon.run("logs", "--attempt", "1", number).stdout, "try 1\n")
        self.assertEqual(self.daemon.run("logs", number).stdout, "try 2\n")
        page = self.daemon.run("show", number).stdout
        self.assertIn("2 started; 1 of 1 retry used", page)
        self.assertIn("status 1", page)

    def test_what_cannot_be_written_is_told(self):
        number = self.daemon.submit("--wait", "--", "echo", "x")
        with open("/dev/full", "w", encoding="utf-8") as full:
            child = subprocess.run([program.ACRE, "logs", number], text=True, stdout=full,
                                   stderr=subprocess.PIPE, timeout=program.TIMEOUT_S,
                                   env=program.environment(ACRE_SERVER=self.daemon.socket))
        self.assertNotEqual(child.returncode, 0)
        self.assertIn("standard output", child.stderr)

    def test_a_reader_that_left_is_no_error(self):
        number = self.daemon.submit("--wait", "--", "seq", "100000")
        child = subprocess.Popen([program.ACRE, "logs", number], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE,
                                 env=program.environment(ACRE_SERVER=self.daemon.socket))
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        self.assertEqual(child.wait(program.TIMEOUT_S), 0)


class Away(program.TestCase):
    """No daemon, or something that is none."""

    def test_every_command_says_how_to_start_one(self):
        for words in ("queue", "show 1", "submit -- true", "run -- true", "nodes", "logs 1",
                      "gpus --cluster", "stats", "audit", "token", "policy", "usage"):
            with self.subTest(words=words):
                result = program.run(*words.split(), ACRE_SERVER="/nonexistent.sock")
                self.assert_ended(result, 9, "no daemon is listening at /nonexistent.sock; start "
                                             "one with 'acre serve'")
                self.assertEqual(result.stdout, "")

    def test_a_bad_server_is_refused(self):
        self.assert_ended(program.run("queue", "--server", "ftp://x"), 2, "is not a server")
        self.assert_ended(program.run("queue", "--server", "localhost:1", "--token-file",
                                      "/nonexistent"), 4, "/nonexistent")
        self.assert_ended(program.run("queue", "--server", "http://127.0.0.1:1"), 9,
                          "no daemon is listening at http://127.0.0.1:1")

    def test_following_survives_a_restart(self):
        with daemon.Daemon() as one:
            number = one.submit("--", "sh", "-c", "echo before; sleep 2; echo after; exit 4")
            one.wait_for(number, "running")
            child = subprocess.Popen([program.ACRE, "submit", "--wait", "--after", f"any:{number}",
                                      "--", "true"], stdout=subprocess.PIPE, text=True,
                                     stderr=subprocess.PIPE,
                                     env=program.environment(ACRE_SERVER=one.socket))
            child.stdout.readline()
            self.assertEqual(one.stop(), 0)
            one.start()
            _, said = child.communicate(timeout=program.TIMEOUT_S)
            self.assertEqual(child.returncode, 0, said)
            self.assertEqual(one.wait_for(number, "failed")["exit"]["code"], 4)
            self.assertEqual(one.run("logs", number).stdout, "before\nafter\n")


