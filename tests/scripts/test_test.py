"""The counting of results checked: no failure of a test program may be lost."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import load

runner = load("runner", pathlib.Path(__file__).parents[2] / "scripts" / "test")

# protocol, meson's result, return code, output -> passed, failed, skipped
CASES = [
    ("tap", "OK", 0, "1..2\nok 1 - a\nok 2 - b\n", 2, [], []),
    ("tap", "OK", 0, "ok 1 - a\n# ok 7 - talk\nokay\n1..1\n", 1, [], []),
    ("tap", "FAIL", 1, "1..2\nok 1 - a\nnot ok 2 - b\n", 1, ["b"], []),
    ("tap", "OK", 0, "1..2\nok 1 - a\nok 2 - b # SKIP no driver\n", 1, [], [("b", "no driver")]),
    ("tap", "OK", 0, "1..1\nok 1 - b # SKIP\n", 0, [], [("b", "no reason given")]),
    ("tap", "SKIP", 0, "1..0 # SKIP no GPU\n", 0, [], [("all", "no GPU")]),
    ("tap", "FAIL", 1, "1..1\nnot ok 1 - b # SKIP no\n", 0, ["b"], []),
    ("tap", "ERROR", 0, "", 0, ["(printed no TAP; exit status 0)"], []),
    ("tap", "ERROR", -11, "", 0, ["(printed no TAP; killed by SIGSEGV)"], []),
    ("tap", "ERROR", -6, "1..3\nok 1 - a\n", 1,
     ["(planned 3 tests, ran 1; killed by SIGABRT)"], []),
    ("tap", "ERROR", 23, "1..1\nok 1 - a\n", 1, ["(exit status 23)"], []),
    ("tap", "OK", 0, "1..1\nok 1 - a\nok 2 - b\n", 2, ["(planned 1 tests, ran 2)"], []),
    ("tap", "OK", 0, "ok 1 - a\n", 1, ["(no TAP plan)"], []),
    ("tap", "TIMEOUT", -15, "1..2\nok 1 - a\n", 1,
     ["(planned 2 tests, ran 1; timed out after 9 s)"], []),
    ("tap", "FAIL", 1, "1..2\nok 1 - a\nBail out! gone\n", 1,
     ["(Bail out! gone; exit status 1)"], []),
    ("exitcode", "OK", 0, "", 1, [], []),
    ("exitcode", "FAIL", 3, "not ok 1\n", 0, ["(exit status 3)"], []),
    ("exitcode", "SKIP", 77, "hm\nno socket\n", 0, [], [("all", "no socket")]),
]


class Counting(unittest.TestCase):
    def test_meson_puts_the_suite_before_the_name(self):
        for name in ("core_error", "acre:unit / core_error"):
            self.assertEqual(runner.bare_name({"name": name}), {"name": "core_error"})

    def test_every_result_counts_once(self):
        for protocol, result, status, text, passed, failed, skipped in CASES:
            with self.subTest(text=text, result=result):
                record = {"name": "x", "result": result, "returncode": status, "stdout": text,
                          "duration": 9.0}
                report = runner.judge(record, protocol)
                self.assertEqual((report.passed, report.failed, report.skipped),
                                 (passed, failed, skipped))
