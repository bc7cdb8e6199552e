#!/usr/bin/env bash
# buf lint (STANDARD) over proto/. buf comes from npm; without npm the check is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "npm is not installed"; exit 77; }
buf=build/buf
if [ ! -x "$buf/node_modules/.bin/buf" ]; then
    mkdir -p "$buf"
    npm install --silent --prefix "$buf" @bufbuild/buf@1 || { echo "npm cannot install buf"; exit 77; }
fi
"$buf/node_modules/.bin/buf" lint proto
