#!/usr/bin/env python3
"""Which test is of which numbered case. Prints TAP, or with --table the table as Markdown.

The cases stand in cases.txt. A test is of a case when its name has the number as a word of its own:
Test(locks, c43_get_twice_…), def test_c04_c35_new_instance_…. A case without a test fails, unless
it is marked as missing; so does a number that is no case's. A mark that is not true any more is
told in a comment.
"""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
LIST = TESTS / "cases.txt"
NAMES = {
    ".c": re.compile(r"^Test\(\w+,\s*(\w+)", re.MULTILINE),
    ".py": re.compile(r"^ +def (test_\w+)\(", re.MULTILINE),
}
NUMBER = re.compile(r"(?<=_)[cC](\d\d)(?=_)")
LINE = re.compile(r"C(\d+) +(missing )?(\S.*)")


def read_cases(text):
    """(text, whether it is missing) by number; ValueError names a line that is none."""
    cases = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match or int(match[1]) in cases:
            raise ValueError(f"cases.txt:{number}: not of the form 'C<number> [missing] text', or "
                             f"a second time: {line}")
        cases[int(match[1])] = (match[3], bool(match[2]))
    return cases


def tests_in(name, text):
    """(number, test) of each case that a file's tests are of."""
    pattern = NAMES[pathlib.Path(name).suffix]
    return [(int(number), test) for test in pattern.findall(text)
            for number in NUMBER.findall(f"_{test}_")]


def find_tests():
    """Tests by number, each as file and name."""
    found = {}
    for path in sorted(TESTS.rglob("test_*")):
        if path.suffix in NAMES:
            for number, test in tests_in(path.name, path.read_text(encoding="utf-8")):
                found.setdefault(number, []).append((str(path.relative_to(TESTS)), test))
    return found


def judge(cases, found):
    """(case, whether it is in order, remark) in the order of the numbers."""
    for number in sorted({*cases, *found}):
        is_missing = cases.get(number, ("", False))[1]
        if number not in cases:
            yield number, False, f"{found[number][0][1]} is of a case that cases.txt does not have"
        elif number in found:
            yield number, True, "no longer missing: drop the mark" if is_missing else ""
        else:
            yield number, is_missing, "missing" if is_missing else "no test has this number"


def check_itself():
    """What the checks find, and what they leave alone."""
    cases = read_cases("# x\n\nC7  seven\nC12 missing twelve\nC13 missing thirteen\nC40 forty\n")
    assert cases == {7: ("seven", False), 12: ("twelve", True), 13: ("thirteen", True),
                     40: ("forty", False)}
    for bad in ("C7", "c7 x", "C7 a\nC7 b"):
        try:
            read_cases(bad)
        except ValueError:
            continue
        raise AssertionError(f"{bad!r} was taken for cases")
    assert tests_in("a.c", "Test(s, d8_c54_c70_x)\n/* Test(s, c01_no) */\nTest(s, c07)\n"
                    "Test(s, abc12_y)\nTest(s,\n     C40_z)\n") == \
        [(54, "d8_c54_c70_x"), (70, "d8_c54_c70_x"), (7, "c07"), (40, "C40_z")]
    assert tests_in("a.py", "    def test_c04_c35_x(self):\n    def c11_no(self):\n") == \
        [(4, "test_c04_c35_x"), (35, "test_c04_c35_x")]
    verdicts = {number: (good, remark) for number, good, remark in
                judge(cases, {7: [("f", "t")], 13: [("f", "t")], 99: [("f", "t")]})}
    assert verdicts[7] == (True, "") and verdicts[12] == (True, "missing")
    assert verdicts[13] == (True, "no longer missing: drop the mark")
    assert not verdicts[40][0] and not verdicts[99][0]


def print_table(cases, found):
    print("| case | what | tests |\n|---|---|---|")
    for number, (text, is_missing) in sorted(cases.items()):
        tests = "<br>".join(f"`{path}` {test}" for path, test in found.get(number, []))
        print(f"| C{number} | {text} | {tests or ('missing' if is_missing else 'none')} |")


def main():
    check_itself()
    cases, found = read_cases(LIST.read_text(encoding="utf-8")), find_tests()
    if sys.argv[1:] == ["--table"]:
        print_table(cases, found)
        return 0
    if sys.argv[1:]:
        print("usage: cases.py [--table]", file=sys.stderr)
        return 2
    verdicts = list(judge(cases, found))
    print(f"1..{len(verdicts)}")
    for n, (number, good, remark) in enumerate(verdicts, 1):
        skip = " # SKIP missing" if remark == "missing" else ""
        print(f"{'' if good else 'not '}ok {n} - C{number}{skip}")
        if remark and not skip:
            print(f"# C{number}: {remark}")
    return 0 if all(good for _, good, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
