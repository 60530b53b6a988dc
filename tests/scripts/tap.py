"""Run one unittest file and print TAP: `python3 tap.py test_x.py`."""
import importlib.machinery
import importlib.util
import sys
import unittest


class Tap(unittest.TestResult):
    """Prints each result as it comes; unittest itself prints nothing."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def line(self, test, word, detail="", note=""):
        self.number += 1
        for text in detail.splitlines():
            print("#", text)
        print(f"{word} {self.number} - {test.id().split('.')[-1]}{note}", flush=True)

    def addSuccess(self, test):
        self.line(test, "ok")

    def addSkip(self, test, reason):
        self.line(test, "ok", note=f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(test, "not ok", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line(test, "not ok", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            is_failure = issubclass(err[0], test.failureException)
            self.line(subtest, "not ok", (self.failures if is_failure else self.errors)[-1][1])


def load(name, path):
    """Import a file by its path, whatever its suffix, without leaving byte code beside it."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(load("tests", sys.argv[1]))
    result = Tap()
    suite.run(result)
    print(f"1..{result.number}")
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
