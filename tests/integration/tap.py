"""Runs unittest cases and prints TAP: main() in place of unittest.main()."""
import sys
import unittest

import cluster


class TapResult(unittest.TestResult):
    """One line a test; what went wrong follows as comments."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def _say(self, verdict, test, tail=""):
        self.n += 1
        print(f"{verdict} {self.n} - {test.id().removeprefix('__main__.')}{tail}", flush=True)

    def _say_failed(self, test, text):
        self._say("not ok", test)
        for line in text.splitlines():
            print(f"# {line}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._say_failed(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say_failed(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], subtest.failureException)
            self._say_failed(subtest, (self.failures if failed else self.errors)[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("ok", test, f" # SKIP {reason}")


def _classes(module):
    return [value for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, unittest.TestCase)]


def main():
    """All cases of the main module, or those whose names are given."""
    loader = unittest.TestLoader()
    module = sys.modules["__main__"]
    if len(sys.argv) > 1:
        suites = [loader.loadTestsFromNames(sys.argv[1:], module)]
    else:
        suites = [loader.loadTestsFromTestCase(case) for case in _classes(module)]
    result = TapResult()
    for suite in suites:
        suite.run(result)
        cluster.kill_descendants()
    print(f"1..{result.n}", flush=True)
    sys.exit(0 if result.wasSuccessful() else 1)
