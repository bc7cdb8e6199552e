#!/usr/bin/env bash
# Keeps the present API as the release that later changes must not break: writes
# proto/releases/VERSION.binpb, a descriptor set without comments, for tests/proto-lint.sh.
# VERSION is that of meson.build; the file of an unreleased version may be written again.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
tests/interop/install.sh
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
mkdir -p proto/releases
tests/interop/node_modules/.bin/buf build proto --exclude-source-info \
    -o "proto/releases/$version.binpb"
echo "proto/releases/$version.binpb"
