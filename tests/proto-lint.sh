#!/usr/bin/env bash
# buf over proto/: lint (STANDARD, COMMENTS), and no breaking change (FILE) since the last release
# in proto/releases. buf comes from npm: without it the check is skipped.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
tests/interop/install.sh
buf=tests/interop/node_modules/.bin/buf
"$buf" lint proto
last=$(find proto/releases -name '*.binpb' | sort -V | tail -n 1)
[ -n "$last" ] || { echo "proto/releases is empty: proto/release.sh" >&2; exit 1; }
"$buf" breaking proto --against "$last"
