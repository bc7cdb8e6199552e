#!/usr/bin/env bash
# Builds a simulator for each planted defect and shows that it is found, with the number of seeds.
#
#   tests/sim/mutants.sh [-o json|text] [--seeds N]
#
# Environment: BUILD_DIR (build).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

case ${1:-} in
--help | -h) sed -n '2,6s/^# \{0,1\}//p' tests/sim/mutants.sh; exit 0 ;;
esac
build=${BUILD_DIR:-build}
[ -f "$build/build.ninja" ] || meson setup "$build" >&2
binaries=()
for mutant in tests/sim/mutants/*.mutant; do
    binaries+=("tests/sim/redistinto-sim-$(basename "$mutant" .mutant)")
done
ninja -C "$build" "${binaries[@]}" >&2
exec python3 tests/sim/hunt.py "$@" "${binaries[@]/#/$build/}"
