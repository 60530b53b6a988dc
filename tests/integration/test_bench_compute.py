"""The compute benchmark, small, where there is no GPU: every figure is measured and told."""
import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["ACRE_BENCH_COMPUTE"]
GROUPS = ["launch", "graph", "ring", "ring rate", "pool", "device-bound", "copy", "batch",
          "compile", "storage", "auto"]
KEYS = ["name", "acre", "raw", "ratio", "unit", "p99"]
ABSENT = 9  # exit code of ACRE_EUNAVAILABLE
TIMEOUT_S = 300


def run(scratch, *arguments):
    return subprocess.run([PROGRAM, "--quick", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT_S, env={**os.environ, "TMPDIR": scratch})


class Figures(unittest.TestCase):  # GPU-1 to GPU-5
    def measure(self, backend):
        with tempfile.TemporaryDirectory() as scratch:
            done = run(scratch, "--backend", backend, "--json")
            if done.returncode == ABSENT:
                self.skipTest(done.stderr.strip())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(scratch), [])
        document = json.loads(done.stdout)
        self.assertEqual(document["backend"], backend)
        self.assertFalse(document["full_size"])
        for figure in document["figures"]:
            with self.subTest(figure=figure):
                self.assertNotIn("error", figure)
                self.assertEqual([key for key in KEYS if key not in figure], [])
                self.assertNotIn("holds", figure)  # limits are those of a GPU
                if figure["acre"] is None:
                    self.assertTrue(figure["note"])
                    continue
                self.assertGreater(figure["acre"], 0)
                self.assertEqual(figure["samples"] > 0, figure["p99"] is not None)
        for group in GROUPS:
            self.assertTrue(any(figure["name"].startswith(group) and figure["acre"] is not None
                                for figure in document["figures"]), group)

    def test_every_figure_on_the_cpu(self):
        self.measure("cpu")

    def test_every_figure_on_opencl(self):
        self.measure("opencl")


class Choice(unittest.TestCase):
    def test_only_some_figures_in_a_table(self):
        with tempfile.TemporaryDirectory() as scratch:
            done = run(scratch, "--backend", "cpu", "--only", "launch,pool", "--markdown")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual([row.split(" | ")[0] for row in rows],
                         ["| figure", "| ---", "| launch", "| pool, 1 MiB", "| pool, mixed",
                          "| pool, 1 MiB, no pool"])

    def test_an_unknown_figure_is_refused_with_those_there_are(self):
        done = run("/tmp", "--only", "launch,lunch")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'lunch'", done.stderr)
        for group in GROUPS:
            self.assertIn(group, done.stderr)

    def test_a_back_end_that_is_absent_says_why(self):
        with tempfile.TemporaryDirectory() as scratch:
            done = run(scratch, "--backend", "hip", "--json")
            self.assertEqual(os.listdir(scratch), [])
        if done.returncode == 0:
            self.skipTest("there is an AMD GPU")
        self.assertEqual(done.returncode, ABSENT)
        self.assertEqual(done.stdout, "")
        self.assertIn("bench: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
