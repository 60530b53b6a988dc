"""The cluster, its rules and its records from the command line, against the real daemon."""
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon
import program


class Cluster(daemon.TestCase):
    def test_nodes_and_what_is_free(self):
        result = self.daemon.run("nodes")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"gpu-a +ok +\S+ of 8 .*SIMULATED")
        self.assertEqual(self.daemon.run("nodes", "--quiet").stdout, "gpu-a\ngpu-b\n")
        self.assertEqual(len(self.daemon.json("nodes")["nodes"]), 2)

    def test_gpus_show_shares_and_holders(self):
        number = self.daemon.submit("--gpus", "0.4", "--", "sleep", "600")
        self.daemon.wait_for(number, "running")
        result = self.daemon.run("gpus", "--cluster")
        self.assert_ended(result)
        self.assertIn("[####......] 0.6 free", result.stdout)
        self.assertRegex(result.stdout, rf"job {number} \S+ \(0\.4\)")
        self.assertIn("SIMULATED", result.stdout)
        self.assertEqual(len(self.daemon.json("gpus", "--cluster")["gpus"]), 16)
        self.assertEqual(len(self.daemon.run("gpus", "--cluster", "-q").stdout.split()), 16)
        self.assertEqual(self.daemon.run("gpus", "--server", self.daemon.socket, "-q").stdout,
                         self.daemon.run("gpus", "--cluster", "-q").stdout)
        self.daemon.run("cancel", number)

    def test_drained_nodes_take_nothing_new(self):
        result = self.daemon.run("drain", "--reason", "new fan", "gpu-b")
        self.assert_ended(result)
        self.assertIn("gpu-b drained", result.stdout)
        self.assertRegex(self.daemon.run("nodes").stdout, r"gpu-b +drained .*new fan")
        self.assert_ended(self.daemon.run("undrain", "gpu-b"))
        self.assertRegex(self.daemon.run("nodes").stdout, r"gpu-b +ok ")
        gpu = self.daemon.run("gpus", "--cluster", "--quiet").stdout.split()[3]
        self.assert_ended(self.daemon.run("drain", "--gpu", "--quiet", "--reason", "hot", gpu))
        self.assertRegex(self.daemon.run("gpus", "--cluster").stdout,
                         rf"{re.escape(gpu)} .*drained .*hot")
        self.assert_ended(self.daemon.run("undrain", "--gpu", gpu))

    def test_what_is_no_text_is_refused(self):
        for words in [("drain", "--reason", "\udcff", "gpu-b"), ("token", "create", "-u", "\udcff"),
                      ("reserve", "--device", "\udcff", "--for", "1h")]:
            with self.subTest(words=words):
                self.assert_ended(self.daemon.run(*words), 2, r"'\xff' is not valid UTF-8")

    def test_what_cannot_be_written_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            child = subprocess.run([program.ACRE, "undrain", "gpu-b"], text=True, stdout=full,
                                   stderr=subprocess.PIPE, timeout=program.TIMEOUT_S,
                                   env=program.environment(ACRE_SERVER=self.daemon.socket))
        self.assertNotEqual(child.returncode, 0)
        self.assertIn("standard output", child.stderr)

    def test_unknown_names(self):
        self.assert_ended(self.daemon.run("drain", "nowhere"), 4, "nowhere")
        self.assert_ended(self.daemon.run("drain", ".."), 2, "'..' is not a valid name")
        self.assert_ended(self.daemon.run("drain", "--gpu", "sim:x/9"), 4, "sim:x/9")

    def test_reservations(self):
        made = self.daemon.run("reserve", "--quiet", "--gpus", "2", "--start", "12h", "--for", "8h")
        self.assert_ended(made)
        number = made.stdout.strip()
        self.assertRegex(self.daemon.run("reserve", "list").stdout,
                         rf"(?m)^ *{number} .*pending +2 +1\.0 +in 12h00m +in 20h00m")
        self.assertIn(number, self.daemon.run("reserve", "list", "-q").stdout.split())
        self.assert_ended(self.daemon.run("reserve", "cancel", number))
        self.assert_ended(self.daemon.run("reserve", "cancel", "999999"), 4, "acre: ")
        self.assert_ended(self.daemon.run("reserve", "--for", "1h"), 2, "no GPUs given")
        self.assert_ended(self.daemon.run("reserve", "--gpus", "1"), 2, "no end given")
        self.assert_ended(self.daemon.run("reserve", "--gpus", "1", "--for", "x"), 2, "--for: 'x'")
        self.assert_ended(self.daemon.run("reserve", "--gpus", "1", "--end", "then"), 2,
                          "--end: 'then' is not a time")

    def test_stats_and_usage(self):
        self.assert_ended(self.daemon.run("run", "--", "true"))
        self.assertTrue(self.daemon.run("stats").stdout)
        self.assertTrue(self.daemon.json("stats"))
        self.assertRegex(self.daemon.run("usage").stdout, r"\APROJECT +USER +GPU HOURS")
        self.assertTrue(self.daemon.json("usage")["accounts"])


class Rules(daemon.TestCase):
    def test_the_policy_is_shown_and_changed(self):
        self.assert_ended(self.daemon.run("policy", "set", "-q", "policy=fair-share"))
        self.assertRegex(self.daemon.run("policy").stdout, r"(?m)^policy +fair-share$")
        result = self.daemon.run("policy", "set", "policy=fcfs", "backfill=false",
                                 "preempt_grace=7s")
        self.assert_ended(result)
        answer = self.daemon.json("policy", "show")
        self.assertEqual((answer["policy"], answer["backfill"]), ("fcfs", False))
        for words, message in [(["policy=chaos"], "chaos"), (["nonsense=1"], "nonsense"),
                               (["backfill"], "'backfill' is not a setting"),
                               ([], "nothing to set")]:
            self.assert_ended(self.daemon.run("policy", "set", *words), 2, message)

    def test_a_policy_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"policy": "sjf"}')
            file.flush()
            self.assert_ended(self.daemon.run("policy", "set", "-q", "--file", file.name))
            self.assertEqual(self.daemon.json("policy", "show")["policy"], "sjf")
            file.write("}")
            file.flush()
            self.assert_ended(self.daemon.run("policy", "set", "--file", file.name), 2, file.name)
            file.truncate(0)
            file.seek(0)
            file.write("[1]")
            file.flush()
            self.assert_ended(self.daemon.run("policy", "set", "--file", file.name), 2,
                              "not a JSON object; accepted: {")
        self.assert_ended(self.daemon.run("policy", "set", "--file", "/nonexistent"), 4,
                          "/nonexistent")

    def test_quotas(self):
        self.assertIn("No quota", self.daemon.run("quota").stdout)
        self.assert_ended(self.daemon.run("quota", "set", "--gpus", "4", "--running", "8",
                                          "--gpu-memory", "160GiB", "--soft", "user:*"))
        self.assertRegex(self.daemon.run("quota", "list").stdout, r"user:\* +4 .* 8 .*soft")
        self.assert_ended(self.daemon.run("quota", "set", "user:ada"), 2, "no limit given")
        self.assert_ended(self.daemon.run("quota", "set", "--gpus", "x", "user:ada"), 2, "gpus")
        self.assert_ended(self.daemon.run("quota", "remove", "user:*"))
        self.assert_ended(self.daemon.run("quota", "remove", "user:*"), 4, "user:*")


class Records(daemon.TestCase):
    options = ("--listen", "127.0.0.1:0")

    def test_tokens_open_the_door_and_close_it(self):
        made = self.daemon.run("token", "create", "--user", "ada", "--role", "viewer", "--expires",
                               "1h", "--note", "for a test")
        self.assert_ended(made)
        token = made.stdout.strip()
        self.assertRegex(token, r"\Aacre_\S+\Z")
        self.assertRegex(self.daemon.run("token").stdout, r"ada .*viewer .*active +for a test")
        port = re.search(r"tcp=\S*:(\d+)", self.daemon.said())[1]
        url = f"http://127.0.0.1:{port}"
        self.assert_ended(self.daemon.run("queue", "--server", url, ACRE_TOKEN=token))
        self.assert_ended(self.daemon.run("submit", "--server", url, "--", "true",
                                          ACRE_TOKEN=token), 3, "acre: ")
        self.assert_ended(self.daemon.run("queue", "--server", url, HOME="/nonexistent"), 3,
                          "give a token with --token-file, ACRE_TOKEN")
        with tempfile.TemporaryDirectory() as home:
            os.makedirs(os.path.join(home, ".config", "acre"))
            path = os.path.join(home, ".config", "acre", "token")
            with open(path, "w", encoding="utf-8") as file:
                file.write(token + "\n")
            os.chmod(path, stat.S_IRUSR)
            self.assert_ended(self.daemon.run("queue", "--server", url, HOME=home))
        number = self.daemon.run("token", "list", "--quiet").stdout.split()[-1]
        self.assert_ended(self.daemon.run("token", "revoke", number))
        self.assert_ended(self.daemon.run("queue", "--server", url, ACRE_TOKEN=token), 3, "acre: ")
        self.assert_ended(self.daemon.run("token", "revoke", "999999"), 4, "acre: ")

    def test_the_audit_trail(self):
        number = self.daemon.submit("--", "true")
        rows = self.daemon.json("audit", "--target", f"job:{number}", "--action",
                                "job submitted")["audit"]
        self.assertEqual([row["result"] for row in rows], ["ok"])
        table = self.daemon.run("audit", "--limit", "2").stdout
        self.assertRegex(table, r"\ASEQ +TIME +WHO")
        self.assertEqual(len(table.splitlines()), 3)
        result = self.daemon.run("audit", "--verify")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"\Aunchanged: \d+ records checked\n\Z")
        self.assertTrue(self.daemon.json("audit", "--verify"))


class Completion(daemon.TestCase):
    def complete(self, *words):
        """What bash would offer for the last word."""
        script = ('source <("$ACRE_PROGRAM" completion bash); acre() { "$ACRE_PROGRAM" "$@"; }; '
                  'compopt() { echo "compopt $*"; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_acre; printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", script, "bash", "acre", *words], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=program.TIMEOUT_S,
                                env=program.environment(ACRE_SERVER=self.daemon.socket,
                                                        ACRE_PROGRAM=program.ACRE))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [line for line in result.stdout.split("\n") if line]

    def test_words_come_from_the_tables(self):
        self.assertEqual(self.complete("sub"), ["submit"])
        self.assertEqual(self.complete("submit", "--isol"), ["--isolation"])
        self.assertEqual(self.complete("submit", "--isolation", "m"), ["mps", "mig"])
        self.assertIn("compopt -o default", self.complete("submit", ""))

    def test_live_jobs_are_offered(self):
        number = self.daemon.submit("--hold", "--", "true")
        self.assertIn(number, self.complete("show", ""))
        self.assertEqual(self.complete("drain", "gpu-"), ["gpu-a", "gpu-b"])

    def test_shells(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("__complete", program.run("completion", shell).stdout)
        self.assert_ended(program.run("completion", "tcsh"), 2, "accepted: bash, zsh, fish")


class Manual(program.TestCase):
    def test_every_page_is_good_roff(self):
        try:
            subprocess.run(["groff", "--version"], stdout=subprocess.DEVNULL, check=True)
        except FileNotFoundError:
            self.skipTest("no groff here")
        with tempfile.TemporaryDirectory() as folder:
            self.assert_ended(program.run("man", "--directory", folder))
            pages = sorted(os.listdir(folder))
            self.assertIn("acre-reserve-list.1", pages)
            for page in pages:
                with self.subTest(page=page):
                    result = subprocess.run(["groff", "-ww", "-man", "-Tascii",
                                             os.path.join(folder, page)], text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertIn("acre", result.stdout)

    def test_one_page(self):
        self.assertIn(".TH ACRE-SUBMIT 1", program.run("man", "submit").stdout)
        self.assertIn(".TH ACRE-TOKEN-LIST 1", program.run("man", "token").stdout)
        self.assert_ended(program.run("man", "sumbit"), 2, "did you mean 'submit'?")
        self.assertIn(".SH EXIT STATUS", program.run("man").stdout)
