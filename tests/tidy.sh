#!/usr/bin/env bash
# clang-tidy over the production code and the examples; needs the compile commands of build-clang/.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
git ls-files 'runtime/*.c' 'coordinator/*.c' 'instance/*.c' 'esi-client/*.c' 'cli/*.c' \
    'examples/*.c' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p build-clang --quiet
