#!/usr/bin/env bash
# Measures the project beside raw gRPC, Redis, etcd and RocksDB, in interleaved rounds, on loopback
# and in temporary directories. Installs nothing and judges nothing: it prints what it measured,
# the bar, and what was busy meanwhile.
#
#   tests/bench/run.sh [-o text|json] [--rounds 5] [--seconds 3] [--only NAME]... [--list]
#
# --only may hold * and ?. REDISTINTO_BUILD names the build folder (build). Packages:
# deploy/packages/{build,test,bench}.txt; figures whose peer is not installed are skipped by name.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

case ${1-} in
--help | -h) sed -n '2,10s/^# \{0,1\}//p' tests/bench/run.sh; exit 0 ;;
esac
command -v meson ninja /usr/bin/python3 >/dev/null || {
    echo "tests/bench/run.sh: install what deploy/packages/build.txt and test.txt list" >&2
    exit 2
}
build=${REDISTINTO_BUILD:-build}
{
    [ -f "$build/build.ninja" ] || meson setup "$build"
    ninja -C "$build" redistinto redistinto-coordinator redistinto-instance \
        tests/bench/bench_raw_echo tests/bench/bench_load \
        tests/bench/bench_pipeline tests/bench/bench_store tests/bench/bench_instance_checks
} >&2
REDISTINTO_BUILD=$(realpath "$build") PYTHONDONTWRITEBYTECODE=1 \
    exec /usr/bin/python3 tests/bench/bench.py "$@"
