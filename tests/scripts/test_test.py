"""The counting of results checked: no failure of a test program may be lost."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

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


class Choosing(unittest.TestCase):
    """--long, --with, --only and --except, in a build directory with four tests."""

    TESTS = (("abuse_a", ["acre:abuse"]), ("abuse_b", ["abuse"]), ("core_a", ["acre:unit"]),
             ("core_soak", ["acre:unit", "acre:long"]))

    def run_main(self, *words, tests=TESTS):
        """(exit status, names that meson was asked to run or None, what was printed)"""
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(runner, "run_meson", return_value=(0, "")) as meson, \
                mock.patch.object(sys, "argv", ["test", *words, folder]), \
                contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(out):
            info = pathlib.Path(folder, "meson-info")
            info.mkdir()
            rows = [{"name": name, "protocol": "tap", "suite": suite} for name, suite in tests]
            (info / "intro-tests.json").write_text(json.dumps(rows), encoding="utf-8")
            try:
                status = runner.main()
            except SystemExit as error:
                status = error.code
            names = meson.call_args.args[1] if meson.called else None
        return status, names, out.getvalue()

    def test_what_matches_runs(self):
        for words, names in (((), ["abuse_a", "abuse_b", "core_a"]),
                             (("--long",), ["core_soak"]),
                             (("--with", "core_*"), ["abuse_a", "abuse_b", "core_a", "core_soak"]),
                             (("--with", "nothing"), ["abuse_a", "abuse_b", "core_a"]),
                             (("--only", "core_*"), ["core_a", "core_soak"]),
                             (("--only", "abuse_*"), ["abuse_a", "abuse_b"]),
                             (("--only", "abuse_a"), ["abuse_a"]),
                             (("--only", "abuse_b", "--only", "*_a"),
                              ["abuse_a", "abuse_b", "core_a"]),
                             (("--only", "*_a", "--except", "abuse_*"), ["core_a"]),
                             (("--except", "abuse_*"), ["core_a"])):
            with self.subTest(words=words):
                self.assertEqual(self.run_main(*words)[1], names)

    def test_a_name_is_of_one_test(self):
        status, names, _ = self.run_main(tests=(("http", ["unit"]), ("http", ["fuzz"])))
        self.assertIsNone(names)
        self.assertIn("http: two tests have this name", status)

    def test_no_match_is_an_error_and_does_not_run_all(self):
        for words in (("--only", "abuse"), ("--only", "abuse_*", "--except", "*")):
            with self.subTest(words=words):
                status, names, said = self.run_main(*words)
                self.assertEqual((status, names), (2, None))
                self.assertIn(f"no test is named like {words[1]}", said)

    def test_what_an_emulator_cannot_is_skipped_with_its_reason(self):
        table = [("abuse_*", "*", "no users"), ("core_a", "it_forks", "no fork")]
        with mock.patch.object(runner, "EMULATED", table), mock.patch.dict(os.environ):
            status, names, said = self.run_main("--emulated")
            self.assertEqual(os.environ["ACRE_TEST_LEAVE_OUT"], "it_forks no fork\n")
            self.assertEqual((status, names), (0, ["core_a"]))
            self.assertIn("skipped: abuse_a/all: no users\n", said)
            self.assertIn("0 passed, 0 failed, 2 skipped", said)
            self.assertEqual(self.run_main("--emulated", "--only", "abuse_a")[:2], (0, None))
        self.assertEqual(self.run_main()[1], ["abuse_a", "abuse_b", "core_a"])


class Reasons(unittest.TestCase):
    # stdout, stderr -> what is shown of it
    CASES = [
        ("1..2\nok 1 - a\n# 1 != 2\nnot ok 2 - b\n", "", ["# 1 != 2", "not ok 2 - b"]),
        ("# first\nnot ok 1 - a\n# second\nnot ok 2 - b\n", "", ["# first", "not ok 1 - a"]),
        ("ok 1 - a\n# 1\n# 2\n# 3\nnot ok 2 - b\nok 3 - c\n", "",
         ["# 1", "# 2", "# 3", "not ok 2 - b"]),
        ("ok 1 - a\nnot ok 2 - b\n", "", ["not ok 2 - b"]),
        ("ok 1 - a\n", "assertion failed\nAborted\n", ["assertion failed", "Aborted"]),
        ("", "", []),
    ]

    def test_the_lines_before_the_first_failure_are_shown(self):
        for out, err, shown in self.CASES:
            with self.subTest(out=out, err=err):
                self.assertEqual(runner.reasons({"stdout": out, "stderr": err}), shown)

    def test_they_are_few(self):
        lines = [f"# {i}" for i in range(100)] + ["not ok 1 - a"]
        shown = runner.reasons({"stdout": "\n".join(lines)})
        self.assertEqual(shown, lines[-runner.REASON_LINES - 1:])
