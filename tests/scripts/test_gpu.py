"""scripts/gpu on a made-up build directory, with a made-up compute-sanitizer."""
import os
import pathlib
import subprocess
import tempfile
import unittest

GPU = pathlib.Path(__file__).parents[2] / "scripts" / "gpu"

CONFORMANCE = """#!/bin/sh
case "$*" in
*devices_are_described*) echo '1..1'; exit 0 ;;
*--soak*) echo '# {"operations": 20, "seconds": 1.5, "errors": 0}'; echo 'ok 1 - soak' ;;
*) echo 'ok 1 - one'; echo 'ok 2 - two # SKIP not here' ;;
esac
"""
BENCH = """#!/bin/sh
echo '{"figures": [{"name": "launch", "holds": true}, {"name": "copy"}]}'
"""
SANITIZER = """#!/bin/sh
echo '# {"operations": 19}'
case "$*" in
*"--only race") echo '========= and Read access at one [24000 hazards]'
               echo '========= and Read access at one [1000000 hazards]' ;;
*"--only ring-race") echo '========= and Read access at one [1600000 hazards]' ;;
*racecheck*) echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors)' ;;
*) echo '========= ERROR SUMMARY: 0 errors' ;;
esac
"""


class Steps(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.write("build/tests/conformance/compute", CONFORMANCE)
        self.write("build/bench/compute", BENCH)
        self.write("bin/compute-sanitizer", SANITIZER)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run_steps(self, *arguments):
        done = subprocess.run([GPU, "--out", self.root / "out", "--operations", "20",
                               self.root / "build", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=50, check=False,
                              env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"})
        return done.returncode, done.stdout

    def test_without_a_gpu_it_says_so(self):
        self.write("build/tests/conformance/compute", "#!/bin/sh\necho '1..0 # SKIP cuda: none'\n")
        self.assertEqual(self.run_steps(), (0, "gpu: skipped: cuda: none\n"))
        self.assertFalse((self.root / "out").exists())

    def test_all_steps_are_rows(self):
        code, text = self.run_steps()
        self.assertEqual(code, 0, text)
        rows = [line.split()[0] for line in text.splitlines()]
        self.assertEqual(rows, ["suite", "soak", "bench", "memcheck", "controls",
                                "racecheck", "gpu:"])
        self.assertIn("2 ok, 0 not ok, 1 skipped", text)
        self.assertIn("operations 20, seconds 1.5, errors 0", text)
        self.assertIn("ok 1 - soak", (self.root / "out" / "soak.txt").read_text(encoding="utf-8"))

    def test_what_fails_is_named(self):
        self.write("build/bench/compute",
                   "#!/bin/sh\necho '{\"figures\": [{\"name\": \"ring\", \"holds\": false}]}'\n")
        self.write("bin/compute-sanitizer", SANITIZER.replace("[24000", "[23999")
                   .replace("SUMMARY: 0 errors", "SUMMARY: 3 errors"))
        code, text = self.run_steps("bench", "memcheck", "controls", "racecheck")
        self.assertEqual(code, 1, text)
        self.assertIn("limits that do not hold: ring", text)
        self.assertIn("race: 1023999 of 1024000 hazards told; ring-race: 1600000 of 1600000", text)
        self.assertIn("gpu: failed: bench, memcheck, controls\n", text)

    def test_a_soak_that_breaks_off_fails(self):
        self.write("build/tests/conformance/compute", CONFORMANCE.replace(
            "echo 'ok 1 - soak'", "exit 1").replace("# {", "# broken {"))
        code, text = self.run_steps("soak")
        self.assertEqual(code, 1, text)
        self.assertIn("did not end well", text)

    def test_a_run_that_waits_is_looked_at(self):
        self.write("build/tests/conformance/compute", CONFORMANCE.replace(
            "*--soak*)", "*--soak*) echo waits-long > /proc/$$/comm; sleep 5;"))
        code, text = self.run_steps("soak")
        self.assertEqual(code, 0, text)
        told = (self.root / "out" / "soak.stall.txt").read_text(encoding="utf-8")
        self.assertIn("tests/conformance/compute --backend cuda", told)

    def test_the_tool_gets_its_options(self):
        self.write("bin/compute-sanitizer", SANITIZER + 'echo "$*"\n')
        code, text = self.run_steps("--tool-options", "--print-limit 8", "memcheck", "racecheck")
        self.assertEqual(code, 0, text)
        for step, options in (("memcheck", ""),
                              ("racecheck", " --force-synchronization-limit 100")):
            said = (self.root / "out" / f"{step}.txt").read_text(encoding="utf-8")
            self.assertIn(f"{step}{options} --target-processes all --print-limit 8 /", said)
            self.assertTrue(said.endswith("--threads 8 --soak 20\n"), said)

    def test_unknown_steps_are_refused(self):
        code, text = self.run_steps("nonsense")
        self.assertEqual(code, 2)
        self.assertIn("'nonsense' is none; accepted: suite, soak", text)


if __name__ == "__main__":
    unittest.main()
