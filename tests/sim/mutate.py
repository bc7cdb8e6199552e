#!/usr/bin/env python3
"""Makes a copy of one source file with one planted defect.

    mutate.py MUTANT ROOT OUTPUT [DEPFILE]   writes the mutated copy
    mutate.py --field NAME MUTANT            prints one header field

A .mutant file has header lines `name: text` (file, why, breaks, seeds), then the exact text that
must occur once in the file, and what replaces it:

    <<<<
    text
    ====
    replacement
    >>>>
"""
import pathlib
import re
import sys

LAYOUT = re.compile(r"(?P<head>.*?)^<<<<\n(?P<old>.*?)^====\n(?P<new>.*?)^>>>>\n\Z", re.S | re.M)


def parse(path):
    match = LAYOUT.match(path.read_text())
    if not match:
        sys.exit(f"{path}: not a mutant: header, <<<<, text, ====, replacement, >>>>")
    fields = {}
    for line in match["head"].splitlines():
        if line and not line.startswith("#"):
            name, colon, value = line.partition(": ")
            if not colon:
                sys.exit(f"{path}: header line without 'name: ': {line}")
            fields[name] = value
    for name in ("file", "why", "breaks", "seeds"):
        if name not in fields:
            sys.exit(f"{path}: no '{name}'")
    return fields, match["old"], match["new"]


def mutate(mutant, root, output, depfile):
    fields, old, new = parse(mutant)
    source = root / fields["file"]
    text = source.read_text()
    found = text.count(old)
    if found != 1:
        sys.exit(f"{mutant}: its text occurs {found} times in {source}, it must be once")
    line = text[: text.index(old)].count("\n") + 1
    output.write_text(
        f'#line 1 "{source}"\n' + text[: text.index(old)] + new + text[text.index(old) + len(old):])
    if depfile:
        depfile.write_text(f"{output}: {mutant} {source}\n")
    return line


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "--field":
        print(parse(pathlib.Path(arguments[2]))[0][arguments[1]])
    elif len(arguments) in (3, 4):
        paths = [pathlib.Path(argument) for argument in arguments]
        mutate(paths[0], paths[1], paths[2], paths[3] if len(paths) == 4 else None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
