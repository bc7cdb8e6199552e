#!/usr/bin/env bash
# The main job in one command: installs the packages, builds, starts a coordinator and three
# instances as real processes, runs every script of deploy/examples at the same time, and shows
# where each key lives. Leaves nothing running, unless --keep. BUILD_DIR (build/) may be set.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

usage() {
    cat <<'TEXT'
usage: deploy/quickstart.sh [--keep]

  --keep   leave the cluster running; prints every address and how to stop it
TEXT
}

keep=no
for argument in "$@"; do
    case $argument in
    --keep) keep=yes ;;
    --help | -h) usage; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
    esac
done

deploy/install-packages.sh build
build=${BUILD_DIR:-build}
echo "Building into $build/ ..." >&2
deploy/build.sh redistinto redistinto-coordinator redistinto-instance redistinto-esi

work=$(mktemp -d "${TMPDIR:-/tmp}/redistinto-quickstart.XXXXXX")
dev=
cleanup() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$dev" ]; then
        kill -TERM "$dev" 2>/dev/null || true
        wait "$dev" 2>/dev/null || true
    fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# In a session of its own, so that --keep survives this terminal.
setsid "$build/redistinto" dev --instances 3 --data-dir "$work/data" --ready-file "$work/ready.json" \
    >"$work/dev.out" 2>"$work/dev.log" </dev/null &
dev=$!
for _ in $(seq 300); do
    [ ! -s "$work/ready.json" ] || break
    kill -0 "$dev" 2>/dev/null || { cat "$work/dev.log" >&2; echo "the cluster did not start" >&2; exit 1; }
    sleep 0.1
done
[ -s "$work/ready.json" ] || { cat "$work/dev.log" >&2; echo "no cluster within 30 s" >&2; exit 1; }
cat "$work/dev.out"

coordinator=$(sed -n 's/.*"coordinator": *"\([^"]*\)".*/\1/p' "$work/ready.json")
echo
echo "Running deploy/examples/*.esi at the same time:"
"$build/redistinto-esi" run --coordinator "$coordinator" deploy/examples/*.esi
echo
echo "Where each key lives:"
"$build/redistinto" keys --coordinator "$coordinator"

if [ "$keep" = yes ]; then
    echo
    echo "The cluster is still running (data and logs in $work):"
    "$build/redistinto" instances --coordinator "$coordinator"
    echo "coordinator $coordinator"
    echo "stop it:  kill $dev && rm -rf $work"
    trap - EXIT
fi
