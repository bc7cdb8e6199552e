#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests. Ends with "N passed, N failed, N skipped".
#
#   tests/run.sh          unit, simulation at fixed seeds, integration, interop  (<= 15 minutes)
#   tests/run.sh --all    besides: clang, sanitizers, threads, fresh simulator seeds, planted
#                         defects, fuzzing, format, tidy, proto lint             (<= 75 minutes)
#
# Environment: COURSE_SCRIPTS (folder with the course's ESI scripts; tests that use it are skipped
# without it), SIM_SEEDS (20000), FUZZ_SECONDS (60), SKIP_INSTALL=1 to install nothing.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

all=no
for argument in "$@"; do
    case $argument in
    --all) all=yes ;;
    --help | -h) sed -n '2,9s/^# \{0,1\}//p' tests/run.sh; exit 0 ;;
    *) echo "tests/run.sh: unknown argument '$argument' (--all, --help)" >&2; exit 2 ;;
    esac
done

passed=0 failed=0 skipped=0
logs=build/test-logs
started=$(date +%s)

say() { printf '[%4ds] %s\n' $(($(date +%s) - started)) "$*"; }

# step NAME COMMAND...: one check; its output is shown only when it fails. Exit code 77 = skipped,
# the last line of the output says why.
step() {
    local name=$1 status log
    shift
    log=$logs/${name//[^A-Za-z0-9]/-}.log
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    case $status in
    0) passed=$((passed + 1)); say "ok      $name" ;;
    77) skipped=$((skipped + 1)); say "skipped $name: $(tail -n 1 "$log")" ;;
    *)
        failed=$((failed + 1))
        say "FAILED  $name (exit code $status)"
        tail -n 60 "$log" | sed 's/^/        /'
        ;;
    esac
    return $status
}

# suite BUILD_DIR NAME...: meson tests of these suites, each test counted by itself.
suite() {
    local build=$1 counts
    shift
    say "meson suites in $build: $*"
    rm -f "$build/meson-logs/testlog.json"
    # shellcheck disable=SC2046
    meson test -C "$build" --no-rebuild --print-errorlogs $(printf -- '--suite %s ' "$@") \
        >"$logs/suite.log" 2>&1 </dev/null
    counts=$(python3 tests/count.py "$build/meson-logs/testlog.json" "$logs/suite.log") || {
        counts="0 1 0"
        tail -n 60 "$logs/suite.log"
    }
    read -r p f s <<<"$(tail -n 1 <<<"$counts")"
    sed '$d' <<<"$counts"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    say "        $p passed, $f failed, $s skipped"
}

finish() {
    say "finished"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

mkdir -p "$logs"
lists=(build test)
[ "$all" = no ] || lists+=(check)
if [ "${SKIP_INSTALL:-0}" != 1 ]; then
    step "install packages" deploy/install-packages.sh "${lists[@]}" || finish
fi

options="-Dcourse_scripts=${COURSE_SCRIPTS:-}"
configure() { # BUILD_DIR OPTIONS...: configures once, keeps the options current
    local build=$1
    shift
    if [ -f "$build/build.ninja" ]; then
        meson setup --reconfigure "$build" "$options"
    else
        meson setup "$build" "$options" "$@"
    fi
}
build_with() {
    configure "$@" && ninja -C "$1"
}

step "build (gcc)" build_with build || finish
step "npm packages" tests/interop/install.sh
suite build unit sim integration interop
if [ "$all" = no ]; then
    finish
fi

CC=clang step "build (clang)" build_with build-clang
step "build (ASan, UBSan)" build_with build-asan -Db_sanitize=address,undefined -Db_lundef=false &&
    suite build-asan unit integration interop
step "build (TSan)" build_with build-tsan -Db_sanitize=thread -Db_lundef=false &&
    suite build-tsan threads
step "simulator, fresh seeds" tests/sim/run.sh --seeds "${SIM_SEEDS:-20000}" \
    --seed "$((started % 1000000000))"
step "simulator, planted defects" tests/sim/mutants.sh
step "fuzz" tests/fuzz/run.sh "${FUZZ_SECONDS:-60}"
step "format" tests/format.sh
step "tidy" tests/tidy.sh
step "proto lint" tests/proto-lint.sh
finish
