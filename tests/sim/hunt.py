#!/usr/bin/env python3
"""Shows that planted defects are found.

    hunt.py [-o json|text] [--seeds N] BINARY...

Runs each mutated simulator until its first violation and says how many seeds that took. Exit code 1
when one is not found within the seeds (default: what its .mutant file allows).
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import mutate

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "redistinto-sim-"


def hunt(binary, seeds):
    name = binary.name.removeprefix(PREFIX)
    fields, _, _ = mutate.parse(HERE / "mutants" / f"{name}.mutant")
    budget = seeds or int(fields["seeds"])
    run = subprocess.run(
        [binary, "--seed", "1", "--seeds", str(budget), "--until-violation", "-o", "json"],
        capture_output=True, text=True, check=False)
    result = {"name": name, "file": fields["file"], "defect": fields["why"], "budget": budget,
              "found": False, "seeds": budget, "invariant": None, "seconds": None}
    summary = json.loads(run.stdout) if run.stdout else {}
    result["seconds"] = summary.get("seconds")
    if run.returncode == 1 and summary.get("violations"):
        broken = re.search(r"^violated (\S+?),", run.stderr, re.M)
        result.update(found=True, seeds=summary["seeds"],
                      invariant=broken and broken[1])
    elif run.returncode != 0:
        # A core's own assertion stops the process: found as well, at an unknown seed.
        result.update(found=True, invariant="assertion", seeds=None)
    return result


def main():
    parser = argparse.ArgumentParser(description="find planted defects")
    parser.add_argument("-o", "--output", choices=("json", "text"), default="text")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("binaries", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    results = []
    for binary in arguments.binaries:
        result = hunt(binary.resolve(), arguments.seeds)
        results.append(result)
        if arguments.output == "text":
            print(f"{'found' if result['found'] else 'MISSED':6} {result['name']:24} "
                  f"{result['seeds'] or '?'} seeds, {result['invariant']}: {result['defect']}",
                  flush=True)
    missed = sum(not result["found"] for result in results)
    if arguments.output == "json":
        print(json.dumps({"mutants": results, "found": len(results) - missed, "missed": missed}))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
