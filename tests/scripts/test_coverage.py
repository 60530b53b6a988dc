"""Coverage sums and floors."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import load

coverage = load("coverage", pathlib.Path(__file__).parents[2] / "scripts" / "coverage")


def file(name, covered, total):
    return {"filename": name, "line_covered": covered, "line_total": total}


class Floors(unittest.TestCase):
    def test_lines_are_summed_by_directory(self):
        sums = coverage.sum_up([file("src/core/a.c", 8, 10), file("src/core/b.c", 1, 10),
                                file("src/api/compat/c.c", 3, 4)])
        self.assertEqual(sums, {"src/core": (9, 20), "src/api": (3, 4)})

    def test_only_directories_with_a_floor_can_fail(self):
        cases = [("src/ledger", 94, True), ("src/ledger", 95, False), ("src/core", 84, True),
                 ("src/device", 85, False), ("src/daemon", 0, False)]
        for directory, percent, expected in cases:
            with self.subTest(directory=directory, percent=percent):
                _, below = coverage.judge({directory: (percent, 100)}, {directory})
                self.assertEqual(bool(below), expected)

    def test_a_directory_that_never_ran_is_below(self):
        _, below = coverage.judge({}, {"src/ledger"})
        self.assertEqual(below, ["src/ledger"])
