#!/usr/bin/env python3
"""Checks who may include whom. Prints TAP; the rules stand in the tables below.

An include is judged by its path from the repository root, the only one that is allowed. A library's
headers belong to the folders in LIBRARIES; pure files may use the C library and a few header-only
libraries, nothing else, and take no time, randomness or environment from anywhere but their caller.
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
# The same for programs that no service is made of, which may use any library. What tests a folder
# knows that folder and what is below it, so that a test cannot tie together what the product keeps
# apart; the simulator knows the cores and nothing that does I/O.
BESIDE = {
    "tests/support": ["runtime/base"],
    "tests/unit/base": ["runtime/base"],
    "tests/unit/model": ["runtime/base", "runtime/model"],
    "tests/unit/store": ["runtime/base", "runtime/store"],
    "tests/unit/rpc": ["runtime/base", "runtime/rpc"],
    "tests/unit/wire": ["runtime/base", "runtime/model", "runtime/wire"],
    "tests/unit/host": ["runtime", "tests/unit/rpc", "tests/unit/store"],
    "tests/unit/coordinator": ["runtime/base", "runtime/model", "coordinator"],
    "tests/unit/instance": ["runtime/base", "runtime/model", "instance"],
    "tests/unit/esi": ["runtime/base", "runtime/model", "esi-client"],
    "tests/unit/cli": ["runtime", "esi-client", "cli"],
    "tests/sim": ["runtime/base", "runtime/model", "runtime/store", "coordinator", "instance",
                  "esi-client"],
    "tests/fuzz": ["runtime/base", "runtime/wire", "instance", "esi-client", "tests/unit/wire"],
    "tests/threads": ["runtime/base", "esi-client", "tests/unit/rpc", "tests/unit/host"],
    "tests/bench": ["runtime", "instance", "cli"],
    "docs/generator": ["runtime", "coordinator", "instance", "esi-client", "cli"],
    "examples": [],  # what is installed
}

# Files of the services that talk to the world; every other file there is part of a pure core.
SHELL_FILES = {
    "coordinator": {"main.c", "server.c", "server.h", "options.c", "options.h", "operation_log.c",
                    "operation_log.h"},
    "instance": {"main.c", "server.c", "server.h", "options.c", "options.h"},
    "esi-client": {"client.c", "client.h", "main.c", "output.c", "output.h", "planned.c",
                   "planned.h", "run.c", "run.h", "run_report.c", "run_report.h",
                   "script_file.c", "script_file.h", "serve.c", "serve.h", "options.c", "options.h"},
}
# beginning of an include -> who may use it
LIBRARIES = {
    "grpc/": ["runtime/rpc/"],
    "protobuf-c/": ["runtime/rpc/", "runtime/wire/"],
    "redistinto/": ["runtime/wire/", "coordinator/server.c", "instance/server.c",
                    "esi-client/serve.c"],
    "google/": ["runtime/wire/"],
    "uv.h": ["runtime/rpc/", "runtime/store/", "cli/"],
    "lmdb.h": ["runtime/store/"],
    "histedit.h": ["cli/"],
    "ini.h": ["runtime/base/"],
}
GENERATED = {"redistinto/", "google/"}
TOP_FOLDERS = {"runtime", "coordinator", "instance", "esi-client", "cli", "tests", "docs",
               "examples"}
CORE_ALLOWED = ["runtime/base", "runtime/model"]
# Prefix of the functions and structures of a service -> who may name them
SYMBOLS = {"coord": ["coordinator"], "inst": ["instance"], "esi": ["esi-client", "cli"],
           "cli": ["cli"]}
PURE_SYSTEM = {
    "assert.h", "ctype.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "xxhash.h", "uthash.h",
}
# What only some files may say.
FORBIDDEN_TEXT = [
    (re.compile(r"\bgrpc_(?!_)\w+\s*\("), "makes a gRPC core call", ["runtime/rpc/"]),
    (re.compile(r"\buv_\w+\s*\("), "makes a libuv call",
     ["runtime/rpc/", "runtime/store/", "runtime/host/", "cli/", "instance/server.c",
      "coordinator/operation_log.c"]),
    (re.compile(r"^extern\b.*\(", re.M), "declares a function of somebody else", []),
    (re.compile(r"^\s*#\s*include[ \t]+[^\"<\s]", re.M), "hides what it includes", []),
    (re.compile(r"^(?!(static|const|extern|typedef)\b|(struct|enum|union) \w+;)[a-z][\w \t*]*[ *]"
                r"\w+(\[[^]]*\])*\s*[=;]", re.M), "has a global variable", []),
    (re.compile(r"^[ \t]*static (?!const\b|inline\b)[^(;={]*(?<!const )\b\w+(\[[^]]*\])*"
                r"\s*[;=](?!=)", re.M), "has a mutable static", ["runtime/base/log.c"]),
    (re.compile(r"^[ \t]*static const [^(;={]*\*\s*\w+(\[[^]]*\])*\s*[;=](?!=)", re.M),
     "has a mutable static pointer", ["runtime/base/log.c"]),
]
# What a pure file may not say: the world comes as an argument, the log is the shell's.
FORBIDDEN_IN_CORE = [
    (re.compile(r"(?<![\w.>])(getenv|rand|random|time|clock\w*|system|abort|exit)\s*\("),
     "asks the process or the world"),
    (re.compile(r"(?<![\w.>])(printf|puts|fputs|fprintf|fopen|remove|rename)\s*\("), "does I/O"),
    (re.compile(r"\brt_log\s*\((?!\s*RT_LOG_DEBUG\b)"), "logs above DEBUG"),
]
COMMENT = re.compile(r"/\*.*?\*/", re.S)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)


def folder_of(path):
    return max((f for f in ALLOWED if path.startswith(f + "/")), key=len, default=None)


def is_core(path, folder):
    if folder == "runtime/model":
        return True
    return folder in SHELL_FILES and pathlib.PurePath(path).name not in SHELL_FILES[folder]


def project_include_is_allowed(path, folder, target):
    if target.startswith(folder + "/"):
        shell = SHELL_FILES.get(folder, ())
        return not is_core(path, folder) or target.removeprefix(folder + "/") not in shell
    allowed = CORE_ALLOWED if is_core(path, folder) else ALLOWED[folder]
    return is_below(target, allowed)


def is_within(path, places):
    return any(path == place or place.endswith("/") and path.startswith(place) for place in places)


def include_is_allowed(path, folder, target, is_quoted):
    library = next((name for name in LIBRARIES if target.startswith(name)), None)

    if library and not is_within(path, LIBRARIES[library]):
        return False
    if ".." in target.split("/"):
        return False
    if target.split("/")[0] in TOP_FOLDERS:
        return is_quoted and project_include_is_allowed(path, folder, target)
    if is_quoted:
        return library in GENERATED
    return not is_core(path, folder) or target in PURE_SYSTEM


def problems_beside(path, text):
    """Of a file that is no part of the product."""
    folder = path.rpartition("/")[0]
    if folder not in BESIDE:
        yield f"{path} is in a folder without a rule"
        return
    allowed = [folder, *BESIDE[folder]]
    if folder.startswith("tests/"):
        allowed.append("tests/support")
    for quoted, system in INCLUDE.findall(COMMENT.sub("", text)):
        target = quoted or system
        is_ours = target.split("/")[0] in TOP_FOLDERS
        if ".." in target.split("/") or is_ours and (system or not is_below(target, allowed)):
            yield f"{path} may not include {target}"


def is_below(target, folders):
    return any(target.startswith(folder + "/") for folder in folders)


def problems_of(path, text):
    folder = folder_of(path)
    if folder is None:
        yield from problems_beside(path, text)
        return
    for quoted, system in INCLUDE.findall(COMMENT.sub("", text)):
        if not include_is_allowed(path, folder, quoted or system, bool(quoted)):
            yield f"{path} may not include {quoted or system}"
    code = COMMENT_OR_STRING.sub("", text)
    for pattern, what, where in FORBIDDEN_TEXT:
        if pattern.search(code) and not is_within(path, where):
            yield f"{path} {what}"
    for area, folders in SYMBOLS.items():
        if folder not in folders and re.search(rf"\b{area}_\w+\s*\(|\bstruct {area}_\w", code):
            yield f"{path} knows {area}_"
    for pattern, what in FORBIDDEN_IN_CORE:
        if is_core(path, folder) and pattern.search(code):
            yield f"{path} is pure and {what}"


# One problem each; the check must find it.
WRONG = [
    ("coordinator/x.c", '#include "instance/core.h"'),
    ("coordinator/x.c", '#include "../instance/core.h"'),
    ("coordinator/x.c", '#include "runtime/base/../rpc/runtime.h"'),
    ("coordinator/x.c", '/* x */ #include "instance/core.h"'),
    ("coordinator/x.c", "#include HEADER"),
    ("coordinator/x.c", '#include "core.h"'),
    ("coordinator/x.c", '#include "coordinator/server.h"'),
    ("coordinator/x.c", '#include "runtime/host/host.h"'),
    ("coordinator/x.c", '#include "redistinto/v1/common.pb-c.h"'),
    ("coordinator/x.c", "#include <time.h>"),
    ("coordinator/x.c", "    now = time(NULL);"),
    ("coordinator/x.c", 'rt_log(RT_LOG_INFO, "event=x");'),
    ("coordinator/server.c", "#include <instance/core.h>"),
    ("coordinator/server.c", "grpc_init();"),
    ("coordinator/server.c", "extern int other(void *core);"),
    ("coordinator/server.c", "int inst_core_state(void *core);"),
    ("runtime/host/x.c", "struct coord_core;"),
    ("runtime/host/x.c", "unsigned counter;"),
    ("instance/x.c", "    static unsigned counter;"),
    ("instance/x.c", "static struct inst_core *core = NULL;"),
    ("instance/x.c", "struct inst_core *core = NULL;"),
    ("instance/x.c", 'static const char *word = "x";'),
    ("runtime/base/x.c", '#include "runtime/model/ids.h"'),
    ("runtime/rpc/x.c", '#include "redistinto/v1/common.pb-c.h"'),
    ("runtime/wire/x.c", "#include <grpc/grpc.h>"),
    ("runtime/model/x.c", "#include <uv.h>"),
    ("cli/x.c", '#include "coordinator/core.h"'),
    ("cli/x.c", '#include "tests/support/check.h"'),
    ("tests/unit/cli/x.c", '#include "coordinator/core.h"'),
    ("tests/unit/coordinator/x.c", '#include "runtime/host/host.h"'),
    ("tests/unit/base/x.c", "#include <runtime/base/list.h>"),
    ("tests/unit/base/x.c", '#include "../base/list.h"'),
    ("tests/sim/x.c", '#include "runtime/rpc/runtime.h"'),
    ("tests/support/x.c", '#include "tests/sim/world.h"'),
    ("tests/new/x.c", "int x;"),
    ("examples/x.c", '#include "esi-client/client.h"'),
]
RIGHT = [
    ("coordinator/x.c", '#include "coordinator/state.h"\n#include "runtime/base/list.h"'),
    ("coordinator/x.c", "rt_env_random(env); env->random(env->ctx); /* time() */"),
    ("coordinator/server.c", '#include "redistinto/v1/admin.pb-c.h"'),
    ("instance/x.c", 'static const char *const words[] = {"a"};\nstatic const int n = 1;'),
    ("instance/x.c", "static void f(struct inst_core *core);\nstatic enum rt_code g(int x)\n{"),
    ("runtime/rpc/x.c", "#include <grpc/grpc.h>\n#include <uv.h>"),
    ("tests/sim/x.c", '#include "instance/core.h"\n#include "tests/support/check.h"'),
    ("tests/unit/rpc/x.c", '#include <grpc/grpc.h>\n#include "echo.pb-c.h"'),
]


def test_the_check():
    for path, text in WRONG:
        if len(list(problems_of(path, text))) != 1:
            sys.exit(f"the check does not find, once, what is wrong with: {text}")
    for path, text in RIGHT:
        for problem in problems_of(path, text):
            sys.exit(f"the check finds what is right: {problem}")


def main():
    test_the_check()
    failed = 0
    files = [file.relative_to(ROOT).as_posix()
             for top in TOP_FOLDERS for file in (ROOT / top).rglob("*.[ch]")]
    folders = sorted({*ALLOWED, *BESIDE, *(file.rpartition("/")[0] for file in files)})
    print(f"1..{len(folders)}")
    for number, folder in enumerate(folders, 1):
        problems = []
        for file in sorted(files):
            if file.rpartition("/")[0] == folder:
                problems += problems_of(file, (ROOT / file).read_text())
        for problem in problems:
            print(f"# {problem}")
        print(f"{'not ok' if problems else 'ok'} {number} - {folder}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
