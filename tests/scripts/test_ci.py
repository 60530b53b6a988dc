"""The lanes of .ci/run checked with a `make` that only says what it was asked: every section is
shown when it ends, and the first that fails stops the others."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).parents[2]
SECTIONS = ("test", "sanitize", "sim", "crash", "test-long", "tidy", "fuzz", "tsan")
SUMMARY = "7 passed, 0 failed, 0 skipped"
# FAILS fails; HANGS never ends.
MAKE = """#!/bin/sh
echo "make says $1"
[ "$1" != "$HANGS" ] || { echo $$ >hangs; exec sleep 1000; }
[ "$1" != "$FAILS" ] || { while [ -n "$HANGS" ] && [ ! -e hangs ]; do sleep 0.01; done; exit 3; }
"""


class Lanes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("bin/make", MAKE), ("scripts/setup", "#!/bin/sh\n"),
                           ("scripts/ci-packing", "#!/bin/sh\necho packed\n")):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        (self.folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", self.folder / ".ci" / "run")
        (self.folder / "build").mkdir()
        (self.folder / "build" / "test-summary.txt").write_text(SUMMARY + "\n", encoding="utf-8")

    def run_ci(self, **changes):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run([self.folder / ".ci" / "run"], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=50, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path, **changes})

    def test_every_section_is_shown_with_its_time_and_the_count_is_last(self):
        done = self.run_ci()
        self.assertEqual(done.returncode, 0, done.stdout)
        for name in SECTIONS:
            self.assertRegex(done.stdout, rf"(?m)^=== {name}: ok \(0:\d\d, 0:\d\d elapsed\)\n"
                             rf"make says {name}$")
        self.assertRegex(done.stdout, r"(?m)^=== packing: ok .*\npacked$")
        self.assertEqual(done.stdout.splitlines()[-1], SUMMARY)

    def test_the_first_failure_stops_all_and_is_shown(self):
        done = self.run_ci(FAILS="sanitize", HANGS="fuzz")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("=== sanitize: FAILED with status 3", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "=== FAILED: sanitize")
        self.assertIn("make says sanitize", done.stdout)
        self.assertNotIn(SUMMARY, done.stdout)
        self.assertNotIn("make says sim", done.stdout)
        pid = (self.folder / "hangs").read_text(encoding="ascii").strip()
        deadline = time.monotonic() + 30
        while self.is_asleep(pid):
            self.assertLess(time.monotonic(), deadline, "the other lane goes on")
            time.sleep(0.02)

    @staticmethod
    def is_asleep(pid):
        try:
            return b"sleep" in pathlib.Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            return False
