#!/usr/bin/env bash
# Installs the npm packages of package-lock.json into tests/interop/node_modules, unless they are
# there. Exit code 77: not possible here, the last line says why.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

command -v node >/dev/null && command -v npm >/dev/null || { echo "node or npm is missing"; exit 77; }
mkdir -p node_modules
exec 9>node_modules/.install-lock
flock 9
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund 9>&- || { echo "npm cannot install the packages"; exit 77; }
    cp package-lock.json node_modules/.installed
fi
