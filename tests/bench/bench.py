"""Runs the figures of figures.py and prints them; run.sh has built what they need. Exit code 0:
everything that was asked for was measured or is named as skipped; 1: something failed; 2: usage.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import platform
import signal
import statistics
import sys

import servers
from clients import Failed
from figures import GROUPS

BUSY = 0.85


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def limit_of(busy):
    """What was busy in our rounds, said in words."""
    shares = {name: statistics.median(b[name] for b in busy) for name in (busy[0] if busy else {})}
    said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    full = [name for name, share in shares.items() if share >= BUSY]
    if not shares:
        return "the code itself"
    if full:
        return f"processor time of the {' and the '.join(full)} ({said} of a core)"
    return f"waiting, or the two cores together ({said} of a core)"


def measure(group, rounds, seconds, say):
    """[side][round] of measurements, the sides taking turns."""
    with contextlib.ExitStack() as stack:
        sides = group.sides(stack, seconds)
        got = [[] for _ in sides]
        for i in range(rounds):
            for side, results in zip(sides, got):
                results.append(side.measure())
            say(f"  round {i + 1}: " + ", ".join(
                f"{side.name} {results[-1][group.figures[0].key]:.0f}"
                for side, results in zip(sides, got)))
        return [side.name for side in sides], got


def result_of(figure, names, got):
    ours = [one[figure.key] for one in got[0]]
    result = {"name": figure.name, "unit": figure.unit, "what": names[0],
              "ours": statistics.median(ours), "peer": None, "peer_name": None, "ratio": None,
              "bar": figure.bar, "bar_is": "at most" if figure.is_upper else "at least",
              "limit": limit_of([one["busy"] for one in got[0] if one["busy"]]),
              "rounds": {"ours": ours}}
    if len(got) == 2:
        peer = [one[figure.key] for one in got[1]]
        result.update(peer=statistics.median(peer), peer_name=names[1],
                      ratio=statistics.median(a / b for a, b in zip(ours, peer)))
        result["rounds"]["peer"] = peer
    value = result["ours"] if result["ratio"] is None else result["ratio"]
    result["met"] = figure.meets(value)
    return result


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def print_table(results):
    head = ["NAME", "OURS", "PEER", "RATIO", "BAR", "MET", "WHAT LIMITS IT"]
    rows = [head]
    for one in results:
        if "skipped" in one:
            rows.append([one["name"], "-", "-", "-", "-", "-", "skipped: " + one["skipped"]])
            continue
        bar = "-" if one["bar"] is None else \
            f"{'≤' if one['bar_is'] == 'at most' else '≥'} {one['bar']:g}"
        rows.append([one["name"], number(one["ours"]), number(one["peer"]),
                     "-" if one["ratio"] is None else f"{one['ratio']:.2f}", bar,
                     {True: "yes", False: "no", None: "-"}[one["met"]], one["limit"]])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def wanted_groups(patterns):
    for group in GROUPS:
        figures = [figure for figure in group.figures
                   if any(fnmatch.fnmatch(figure.name, pattern) for pattern in patterns)]
        if figures:
            yield group, figures


def run(arguments, say):
    results, has_failed = [], False
    for group, figures in wanted_groups(arguments.only or ["*"]):
        say(" ".join(figure.name for figure in figures))
        try:
            names, got = measure(group, arguments.rounds, arguments.seconds, say)
            results += [result_of(figure, names, got) for figure in figures]
        except servers.Missing as missing:
            results += [{"name": figure.name, "skipped": str(missing)} for figure in figures]
        except Failed as failed:
            has_failed = True
            say(f"  failed: {failed}")
            results += [{"name": figure.name, "skipped": "failed, see above"}
                        for figure in figures]
        finally:
            servers.stop_all()
    return results, has_failed


def parse():
    parser = argparse.ArgumentParser(prog="tests/bench/run.sh")
    parser.add_argument("-o", choices=["text", "json"], default="text", dest="output")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each side in each round")
    parser.add_argument("--only", action="append", metavar="NAME", help="may hold * and ?")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    arguments = parser.parse_args()
    if not 1 <= arguments.rounds <= 100 or not 0.1 <= arguments.seconds <= 60:
        parser.error("1..100 rounds of 0.1..60 seconds")
    if not list(wanted_groups(arguments.only or ["*"])):
        parser.error("no figure has this name (--list)")
    return arguments


def main():
    arguments = parse()
    if arguments.list:
        for _, figures in wanted_groups(arguments.only or ["*"]):
            print("\n".join(figure.name for figure in figures))
        return 0
    results, has_failed = run(arguments, lambda text: print(text, file=sys.stderr, flush=True))
    if arguments.output == "json":
        print(json.dumps({"machine": {"processor": processor(), "cores": os.cpu_count()},
                          "rounds": arguments.rounds, "seconds": arguments.seconds,
                          "figures": results}, indent=2))
    else:
        print_table(results)
    return int(has_failed)


def interrupted(*_):
    """Unwinds, which ends the servers and removes their directories."""
    sys.exit(130)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    sys.exit(main())
