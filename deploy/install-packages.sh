#!/usr/bin/env bash
# Installs what is missing of the named lists (deploy/packages/NAME.txt). Does nothing, and needs
# no root, when everything is there. A node or npm from elsewhere counts as Debian's.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/packages"

lists=$(printf '%s|' *.txt | sed 's/\.txt|/|/g; s/|$//')
[ $# -gt 0 ] || { echo "usage: $0 $lists..." >&2; exit 2; }
wanted=()
for list in "$@"; do
    [ -f "$list.txt" ] || { echo "$0: no package list '$list' ($lists)" >&2; exit 2; }
    while read -r name; do wanted+=("$name"); done < <(grep -v '^#' "$list.txt")
done

is_there() { # PACKAGE
    case $1 in
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    esac
}
missing=()
for name in "${wanted[@]}"; do
    is_there "$name" || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "$0: run as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >&2
