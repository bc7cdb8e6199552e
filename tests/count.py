#!/usr/bin/env python3
"""Counts what a meson test run did: count.py TESTLOG_JSON SUITE_LOG.

TAP tests count by their subtests, the others as one. Prints a line for each failed or skipped
test, then "PASSED FAILED SKIPPED". Exits 1 when no test ran.
"""
import json
import re
import sys

TAP_LINE = re.compile(r"^(not ok|ok)\b(.*)$", re.M)


def count_tap(text):
    passed = failed = skipped = 0
    for verdict, rest in TAP_LINE.findall(text):
        if "# SKIP" in rest.upper():
            skipped += 1
        elif verdict == "ok":
            passed += 1
        else:
            failed += 1
    return passed, failed, skipped


def count(test):
    result = test["result"]
    passed, failed, skipped = count_tap(test.get("stdout", ""))
    if result == "SKIP":
        return 0, 0, 1
    if result not in ("OK", "EXPECTEDFAIL"):
        return passed, max(failed, 1), skipped
    return (passed, failed, skipped) if passed + failed + skipped else (1, 0, 0)


def main():
    total = [0, 0, 0]
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f"no test ran: {error}", file=sys.stderr)
        return 1
    for test in tests:
        counts = count(test)
        total = [a + b for a, b in zip(total, counts)]
        if counts[1]:
            print(f"        FAILED  {test['name']} ({test['result']})")
            output = (test.get("stdout", "") + test.get("stderr", "")).splitlines()
            for line in output[-40:]:
                print(f"            {line}")
        elif counts[2]:
            lines = test.get("stdout", "").strip().splitlines()
            reasons = [line for line in lines if "# SKIP" in line] or lines or ["no reason given"]
            print(f"        skipped {test['name']}: {reasons[-1]}")
    print(*total)
    return 0 if sum(total) else 1


if __name__ == "__main__":
    sys.exit(main())
