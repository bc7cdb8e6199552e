#!/usr/bin/env python3
"""Checks who may include whom. Prints TAP; the rules stand in ALLOWED and PURE below.

An include is judged by its path from the repository root; system headers are judged only in pure
folders, which may use the C library and a few header-only libraries, nothing else.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> project folders that it may include (itself aside)
ALLOWED = {
    "runtime/base": [],
    "runtime/model": ["runtime/base"],
    "runtime/store": ["runtime/base"],
    "runtime/rpc": ["runtime/base"],
    "runtime/wire": ["runtime/base", "runtime/model"],
    "runtime/host": ["runtime/base", "runtime/model", "runtime/store", "runtime/rpc",
                     "runtime/wire"],
    "coordinator": ["runtime"],
    "instance": ["runtime"],
    "esi-client": ["runtime"],
    "cli": ["runtime", "esi-client"],
}

# Files of the services that talk to the world; every other file there is part of a pure core.
SHELL_FILES = {
    "coordinator": {"main.c", "server.c", "server.h", "options.c", "options.h"},
    "instance": {"main.c", "server.c", "server.h", "options.c", "options.h"},
    "esi-client": {"main.c", "run.c", "run.h", "options.c", "options.h", "check.c", "check.h"},
}
CORE_ALLOWED = ["runtime/base", "runtime/model"]
PURE_SYSTEM = {
    "assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "xxhash.h", "uthash.h",
}
# What each side of the wire may know of gRPC and of generated code.
FORBIDDEN_TEXT = [
    (re.compile(r"\bgrpc_(?!_)\w+\s*\("), "gRPC core call", ["runtime/rpc"]),
    (re.compile(r"\buv_\w+\s*\("), "libuv call",
     ["runtime/rpc", "runtime/store", "runtime/host", "runtime/base", "cli", "coordinator/server.c",
      "instance/server.c", "esi-client/run.c", "coordinator/main.c", "instance/main.c",
      "esi-client/main.c"]),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)


def folder_of(path):
    return max((f for f in ALLOWED if path.startswith(f + "/")), key=len, default=None)


def is_core(path, folder):
    if folder == "runtime/model":
        return True
    return folder in SHELL_FILES and pathlib.PurePath(path).name not in SHELL_FILES[folder]


def project_include_is_allowed(path, folder, target):
    if target.startswith(folder + "/"):
        return True
    allowed = CORE_ALLOWED if is_core(path, folder) else ALLOWED[folder]
    return any(target.startswith(prefix + "/") for prefix in allowed)


def problems_of(path, text):
    folder = folder_of(path)
    for project, system in INCLUDE.findall(text):
        if project and project.split("/")[0] in {"runtime", "coordinator", "instance",
                                                 "esi-client", "cli", "tests"}:
            if not project_include_is_allowed(path, folder, project):
                yield f'{path} may not include "{project}"'
        elif is_core(path, folder) and system not in PURE_SYSTEM and system:
            yield f"{path} is pure and may not include <{system}>"
        elif is_core(path, folder) and project:
            yield f'{path} is pure and may not include generated "{project}"'
    for pattern, what, where in FORBIDDEN_TEXT:
        if pattern.search(text) and not any(path.startswith(w) for w in where):
            yield f"{path} makes a {what}"


def main():
    self_test = list(problems_of("coordinator/x.c", '#include "instance/core.h"\ngrpc_init();'))
    if len(self_test) != 2:
        sys.exit("the check does not find what it must find")
    failed = 0
    folders = sorted(ALLOWED)
    print(f"1..{len(folders)}")
    for number, folder in enumerate(folders, 1):
        problems = []
        for file in sorted((ROOT / folder).rglob("*.[ch]")):
            path = file.relative_to(ROOT).as_posix()
            if folder_of(path) == folder:
                problems += problems_of(path, file.read_text())
        for problem in problems:
            print(f"# {problem}")
        print(f"{'not ok' if problems else 'ok'} {number} - {folder}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
