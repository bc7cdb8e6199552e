#!/usr/bin/env bash
# Every C file is as clang-format leaves it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
