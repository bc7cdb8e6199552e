#!/usr/bin/env bash
# Builds the fuzz targets with clang, AddressSanitizer and UBSan, and runs each of them on a copy of
# its corpus. One line a target; fails when a target finds something, which is then kept in
# BUILD_DIR/findings.
#
#   tests/fuzz/run.sh [SECONDS]     for each target; 60
#
# Environment: BUILD_DIR (build-fuzz), FUZZ_TARGETS (all; names as in corpus/). Exit code 77: clang's
# fuzzer runtime is missing.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

case ${1:-} in
--help | -h) sed -n '2,10s/^# \{0,1\}//p' tests/fuzz/run.sh; exit 0 ;;
'' | *[!0-9]*)
    [ $# -eq 0 ] || { echo "tests/fuzz/run.sh: '$1' is no number of seconds (--help)" >&2; exit 2; }
    ;;
esac
seconds=${1:-60}
build=${BUILD_DIR:-build-fuzz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$work/probe.c"
if ! clang -fsanitize=fuzzer,address "$work/probe.c" -o "$work/probe" 2>"$work/probe.log"; then
    echo "clang with its fuzzer runtime is missing (package libclang-rt-14-dev)"
    exit 77
fi

if [ ! -f "$build/build.ninja" ]; then
    CC=clang meson setup "$build" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
        -Dc_args=-fsanitize=fuzzer-no-link >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
fi
targets=${FUZZ_TARGETS:-$(cd tests/fuzz/corpus && echo *)}
# shellcheck disable=SC2046,SC2086
ninja -C "$build" $(printf 'tests/fuzz/fuzz_%s ' $targets) >"$work/build.log" 2>&1 ||
    { tail -n 40 "$work/build.log"; exit 1; }

stat() { sed -n "s/^stat::$1: *//p" "$work/log" | tail -n 1; }

mkdir -p "$build/findings"
failed=0
for target in $targets; do
    cp -r "tests/fuzz/corpus/$target" "$work/$target"
    n_before=$(find "$work/$target" -type f | wc -l)
    status=0
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$build/tests/fuzz/fuzz_$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/findings/$target-" "$work/$target" >"$work/log" 2>&1 || status=$?
    n_after=$(find "$work/$target" -type f | wc -l)
    printf '%-10s %s runs, %d new units\n' "$target" "$(stat number_of_executed_units)" \
        $((n_after - n_before))
    if [ "$status" -ne 0 ]; then
        failed=1
        echo "$target FAILED (exit code $status):"
        tail -n 60 "$work/log"
    fi
done
exit $failed
