"""Help, names and exit codes: every command explains itself, every typing error is answered."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

SHARED = ["server PATH|URL", "token-file FILE", "cacert FILE", "insecure", "json", "quiet"]
JOB = ["gpus N|0.X", "gpu-memory SIZE", "nodes N", "cpus N", "memory SIZE", "model NAME,...",
       "label KEY=VALUE", "priority LEVEL", "time TIME", "estimate TIME", "retries N",
       "isolation KIND", "exclusive", "annotations FILE", "hold", "begin TIME",
       "after [ok:|any:]JOB", "array FIRST-LAST[%MOST]", "name NAME", "project NAME",
       "directory DIR",
       "env NAME[=VALUE]", "export", "no-network", "reservation ID", "warn TIME",
       "warn-signal NAME", "grace TIME", "smaller-on-oom", "no-preempt"]
COMMANDS = {
    "submit": JOB + ["wait"] + SHARED,
    "run": JOB + SHARED,
    "queue": ["all", "state STATE", "user NAME", "project NAME", "name NAME", "limit N", "watch",
              "until-done", "interval TIME", "count N"] + SHARED,
    "show": SHARED,
    "why": SHARED,
    "logs": ["follow", "stream NAME", "tail BYTES", "attempt N", "raw"] + SHARED,
    "cancel": ["array"] + SHARED,
    "hold": ["array"] + SHARED,
    "release": ["array"] + SHARED,
    "priority": ["array"] + SHARED,
    "nodes": ["capacity", "best", "memory SIZE", "model NAME,...", "vendor NAME", "label KEY=VALUE",
              "near NODE", "cpu"] + SHARED,
    "balance": ["node NODE", "strategy NAME", "memory SIZE", "affinity GPU", "last GPU"] + SHARED,
    "gpus": ["cluster", "watch", "interval TIME", "count N", "processes", "sim FILE"] + SHARED,
    "drain": ["gpu", "reason TEXT"] + SHARED,
    "undrain": ["gpu"] + SHARED,
    "reserve": ["gpus N", "device ID", "share 0.X", "start TIME", "for TIME", "end TIME",
                "isolation KIND"] + SHARED,
    "reserve list": SHARED,
    "reserve cancel": SHARED,
    "policy show": SHARED,
    "policy set": ["file FILE.json"] + SHARED,
    "quota list": SHARED,
    "quota set": ["gpus N", "gpu-memory SIZE", "running N", "queued N", "gpu-hours N",
                  "soft"] + SHARED,
    "quota remove": SHARED,
    "usage": SHARED,
    "stats": SHARED,
    "token list": SHARED,
    "token create": ["user NAME", "project NAME", "role ROLE", "note TEXT",
                     "expires TIME"] + SHARED,
    "token revoke": SHARED,
    "audit": ["verify", "actor WHO", "action WHAT", "target WHICH", "limit N"] + SHARED,
    "compute devices": ["json"],
    "compute run": ["kernel NAME", "device DEVICE", "arg NAME=VALUE", "out NAME=@FILE.npy",
                    "items N[,N,N]", "grid N[,N,N]", "group N[,N,N]", "repeat N", "limit TIME",
                    "options TEXT", "json", "quiet"],
    "compute bench": ["device DEVICE", "json", "quiet"],
    "compute explain": ["kernel NAME", "device DEVICE", "inout NAME", "learn", "arg NAME=NUMBER",
                        "json", "quiet"],
    "compute cache": ["to SIZE", "directory DIR", "json"],
    "serve": ["config FILE", "state DIR", "socket PATH", "listen ADDRESS", "no-tcp",
              "tls-cert FILE", "tls-key FILE", "sim FILE", "engine NAME", "policy FILE",
              "run-as USER", "min-uid N", "allow-root", "admins NAMES", "operators NAMES",
              "project NAME", "rate N", "failures N", "connections N", "sample TIME",
              "log-level LEVEL"],
    "doctor": ["json"],
    "simulate faults": ["seeds N", "first-seed N", "steps N", "story", "json", "quiet"],
    "simulate replay": ["trace FILE", "nodes NxG", "policy NAME,...", "estimates HOW",
                        "plot FILE.svg", "json", "quiet"],
    "simulate packing": ["nodes FILE", "tasks FILE", "strategy NAME,...", "seeds N",
                         "first-seed N", "plot FILE.svg", "json", "quiet"],
    "completion": [],
    "man": ["directory DIR"],
    "version": [],
    "help": [],
}

# words, exit status, part of the message
REFUSALS = [
    ("gpsu", 2, "unknown command 'gpsu'; did you mean 'gpus'?"),
    ("doctr", 2, "did you mean 'doctor'?"),
    ("simulate", 2, "accepted: simulate packing"),
    ("simulate pakcing", 2, "did you mean 'simulate packing'?"),
    ("entirely-else", 2, "unknown command 'entirely-else'; --help lists the commands"),
    ("help gpsu", 2, "did you mean 'gpus'?"),
    ("compute rnu", 2, "did you mean 'compute run'?"),
    ("compute run", 2, "usage: acre compute run KERNEL"),
    ("gpus --jsno", 2, "unknown option '--jsno'; did you mean --json?"),
    ("gpus --entirely-else", 2, "--help lists what 'gpus' accepts"),
    ("gpus --json --json", 2, "--json: given twice"),
    ("gpus --json=yes", 2, "--json takes no value, but got 'yes'"),
    ("gpus --sim", 2, "--sim needs a value: --sim FILE"),
    ("gpus --interval 5", 2, "--interval: '5'"),
    ("gpus --count 0", 2, "--count: '0'"),
    ("gpus more", 2, "'more' is one too many"),
    ("doctor --jsn", 2, "did you mean --json?"),
    ("version more", 2, "'more' is one too many"),
    ("simulate packing", 2, "--nodes is missing; usage: acre simulate packing --nodes FILE"),
    ("simulate packing --nodes a", 2, "--tasks is missing"),
    ("simulate packing --node a --tasks b", 2, "did you mean --nodes?"),
    ("simulate packing --nodes a --tasks b --seeds 0", 2, "--seeds: '0'"),
    ("simulate packing --nodes a --tasks b --seeds 1001", 2, "1 to 1000"),
    ("simulate packing --nodes a --tasks b --seeds many", 2, "--seeds: 'many'"),
    ("simulate packing --nodes a --tasks b --first-seed -1", 2, "--first-seed: '-1'"),
]


class Help(program.TestCase):
    def test_the_program_lists_its_commands(self):
        for words in (["--help"], ["-h"], ["help"]):
            with self.subTest(words=words):
                result = program.run(*words)
                self.assert_ended(result)
                listed = re.findall(r"^  (\w+(?: \w+)?)  +\S", result.stdout, re.M)
                self.assertEqual(sorted(listed), sorted(COMMANDS))

    def test_without_a_command_help_is_printed_and_it_is_an_error(self):
        result = program.run()
        self.assertEqual((result.returncode, result.stdout), (2, program.run("--help").stdout))

    def test_every_command_shows_each_of_its_options(self):
        for name, options in COMMANDS.items():
            with self.subTest(command=name):
                result = program.run(*name.split(), "--help")
                self.assert_ended(result)
                bare = re.sub(r" (list|show|devices)$", r" [\1]", name)
                self.assertRegex(result.stdout, f"^Usage: acre ({re.escape(name)}|"
                                                f"{re.escape(bare)})")
                table = result.stdout.split("\nOptions:\n")[1].split("\n\n")[0]
                shown = re.findall(r"^  (?:-\w, |    )--(.*?)(?:  |$)", table, re.M)
                self.assertEqual(shown, options + ["help"])
                for words in (["help", *name.split()], [*name.split(), "-h"]):
                    self.assertEqual(program.run(*words).stdout, result.stdout)

    def test_help_of_packing_names_every_strategy(self):
        refusal = program.run("simulate", "packing", "--nodes", program.NODES, "--tasks",
                              program.TASKS, "--strategy", "none").stderr
        names = re.search(r"accepted: (.*)", refusal)[1].split(", ")
        self.assertGreater(len(names), 5)
        text = program.run("simulate", "packing", "--help").stdout
        for name in names:
            self.assertRegex(text, rf"\b{name}\b")

    def test_typing_errors_are_answered(self):
        for words, status, message in REFUSALS:
            with self.subTest(words=words):
                result = program.run(*words.split())
                self.assert_ended(result, status, message)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"\Aacre: .*\n\Z")

    def test_a_reader_that_left_is_no_error(self):
        packing = ["simulate", "packing", "--nodes", program.NODES, "--tasks", program.TASKS]
        for words in (["--help"], ["version"], ["doctor"], ["gpus", "--help"],
                      ["gpus", "--sim", program.CLUSTER, "--json"],
                      ["gpus", "--sim", program.CLUSTER, "--watch", "--interval", "10ms"],
                      packing, [*packing, "--json"]):
            with self.subTest(words=words):
                reader, writer = os.pipe()
                os.close(reader)
                child = subprocess.run([program.ACRE, *words], stdout=writer, cwd=program.SOURCE,
                                       stderr=subprocess.PIPE, timeout=program.TIMEOUT_S)
                os.close(writer)
                self.assertEqual((child.returncode, child.stderr), (0, b""))

    def test_output_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            child = subprocess.run([program.ACRE, "version"], stdout=full, stderr=subprocess.PIPE,
                                   text=True, timeout=program.TIMEOUT_S)
        self.assert_ended(child, 11, "standard output: No space left on device")
