#!/usr/bin/env bash
# Runs the README's two commands in a fresh Debian 12 root: finds the packages that a used machine
# hides. Needs root and mmdebstrap; about 5 minutes. Extra arguments go to tests/run.sh.
#
#   tests/fresh-root.sh [--all]        COMMIT (HEAD) chooses what is tested
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

[ "$(id -u)" -eq 0 ] || { echo "$0: needs root" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "$0: apt-get install mmdebstrap" >&2; exit 2; }

root=$(mktemp -d "${TMPDIR:-/tmp}/redistinto-root.XXXXXX")
cleanup() {
    for mount in proc sys dev; do
        mountpoint -q "$root/$mount" && umount -lR "$root/$mount"
    done
    rm -rf --one-file-system "$root"
}
trap cleanup EXIT

sources=/etc/apt/sources.list.d/debian.sources
[ -f "$sources" ] || sources=http://deb.debian.org/debian
mmdebstrap --quiet --mode=root --variant=minbase bookworm "$root" "$sources"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
[ ! -f ~/.npmrc ] || cp ~/.npmrc "$root/root/"
mkdir "$root/src"
git archive "${COMMIT:-HEAD}" | tar -x -C "$root/src"
for mount in proc sys dev; do
    mount --rbind "/$mount" "$root/$mount"
    mount --make-rslave "$root/$mount"
done
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" bash -ec \
    "cd /src && ./deploy/quickstart.sh && ./deploy/quickstart.sh && ./tests/run.sh $*"
