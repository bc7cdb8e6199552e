#!/usr/bin/env bash
# Builds the simulator if needed and runs fresh or given seeds.
#
#   tests/sim/run.sh [--seeds N] [--seed FIRST] [--jobs N] [-o json|text]
#
# Without --seed the first one is taken from the clock, and printed: every seed can be replayed.
# Environment: BUILD_DIR (build).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

build=${BUILD_DIR:-build}
arguments=(--jobs "$(nproc)" --seeds 1000)
first=no
for argument in "$@"; do
    case $argument in
    --help | -h) sed -n '2,7s/^# \{0,1\}//p' tests/sim/run.sh; exit 0 ;;
    --seed) first=yes ;;
    esac
done
[ "$first" = yes ] || arguments+=(--seed "$(date +%s)000000")
[ -f "$build/build.ninja" ] || meson setup "$build" >&2
ninja -C "$build" tests/sim/redistinto-sim >&2
exec "$build/tests/sim/redistinto-sim" "${arguments[@]}" "$@"
