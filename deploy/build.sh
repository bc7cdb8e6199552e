#!/usr/bin/env bash
# Configures (once) and builds with meson. BUILD_DIR (build/) and MESON_OPTIONS may be set.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

build=${BUILD_DIR:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

# shellcheck disable=SC2086
[ -f "$build/build.ninja" ] || run meson setup "$build" ${MESON_OPTIONS:-}
run ninja -C "$build" "$@"
