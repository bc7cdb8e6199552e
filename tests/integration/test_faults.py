"""The course's setup while its processes are killed: ten runs of tests/faults/course.py, and that
it would notice a loss."""
import pathlib
import sys
import unittest

import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

import course  # noqa: E402

SEED = 1
KEY, OTHER = course.KEYS[:2]


def attempt(value, token=None, acked=False, key=KEY):
    made = course.Attempt(key, value)
    made.token, made.acked = token, acked
    return made


def judge(value, *attempts):
    """The sentences about one key whose last value is this one."""
    finals = dict.fromkeys(course.KEYS)
    finals[KEY] = value
    return course.judge(attempts, finals)


class Judge(unittest.TestCase):
    """What counts as lost."""

    def test_nothing_was_acknowledged(self):
        self.assertEqual(judge(None, attempt("x0", 5)), [])

    def test_the_newest_is_there(self):
        self.assertEqual(judge("x1", attempt("x0", 5, True), attempt("x1", 9, True)), [])

    def test_one_that_was_not_acknowledged_is_newer(self):
        self.assertEqual(judge("x1", attempt("x0", 5, True), attempt("x1", 9)), [])

    def test_one_of_a_killed_script_may_be_newer(self):
        self.assertEqual(judge("x1", attempt("x0", 5, True), attempt("x1")), [])

    def test_no_value(self):
        self.assertEqual(len(judge(None, attempt("x0", 5, True))), 1)

    def test_a_value_that_nobody_wrote(self):
        self.assertEqual(len(judge("y", attempt("x0", 5, True))), 1)

    def test_an_older_one(self):
        self.assertEqual(len(judge("x0", attempt("x0", 5, True), attempt("x1", 9, True))), 1)
        self.assertEqual(len(judge("x0", attempt("x0", 5), attempt("x1", 9, True))), 1)

    def test_the_set_before_under_the_same_lock(self):
        self.assertEqual(len(judge("x0", attempt("x0", 5), attempt("x1", 5, True))), 1)

    def test_a_value_of_another_key(self):
        self.assertEqual(len(judge("x1", attempt("x0", 5, True),
                                   attempt("x1", 9, True, OTHER))), 2)


class Results(unittest.TestCase):
    """What a script's results say."""

    def setUp(self):
        self.script = course.Script(course.random.Random(1), "x0")
        self.lines = range(1, len(self.script.lines) + 1)

    def note(self, outcome, **more):
        for line in self.lines:
            self.script.note({"line": line, "outcome": outcome, "lock_token": 7,
                              "statement": self.script.lines[line - 1].split()[0], **more})

    def acked(self):
        return [a for a in self.script.attempts() if a.acked]

    def test_ok(self):
        self.note("ok")
        self.assertEqual(len(self.acked()),
                         sum(line.startswith("STORE") for line in self.script.lines))
        self.assertEqual({a.token for a in self.script.attempts()}, {7})

    def test_a_store_that_lost_the_set_acknowledges_nothing(self):
        self.note("ok", sets_lost=True)
        self.assertEqual(self.acked(), [])

    def test_failures_acknowledge_nothing(self):
        for outcome in ("failed", "unknown", "waiting"):
            self.note(outcome)
            self.assertEqual(self.acked(), [])
            self.assertEqual({a.token for a in self.script.attempts()}, {None})


class Runs(unittest.TestCase):
    """Both profiles in turn."""

    def check(self, number):
        outcome = course.one_run(SEED, number)
        self.assertEqual((outcome.lost, outcome.blocked), ([], []), f"seed {SEED}, run {number}")
        self.assertGreaterEqual(outcome.acked, course.ACKED_MIN)
        self.assertEqual((outcome.kills["coordinator"], outcome.kills["instance"]),
                         (2, len(course.INSTANCES)))


for number in range(10):
    setattr(Runs, f"test_{number}_{course.PROFILES[number % 2]}",
            lambda self, number=number: self.check(number))


if __name__ == "__main__":
    tap.main()
