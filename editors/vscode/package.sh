#!/bin/sh
# Builds editors/vscode/dist/savoir-VERSION.vsix. Needs Node.js 20 and the npm registry.
#
#   editors/vscode/package.sh                without a program: the extension uses savoir on the PATH
#   editors/vscode/package.sh PROGRAM        with this program bundled
#   editors/vscode/package.sh PROGRAM TARGET for one platform, such as linux-x64
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
program=${1:-}
target=${2:-}
rm -rf "$here/bin" "$here/dist"
if [ -n "$program" ]; then
    mkdir -p "$here/bin"
    cp "$program" "$here/bin/"
    chmod 755 "$here/bin/$(basename -- "$program")"
fi
cp "$here/../../LICENSE-MIT" "$here/LICENSE.txt"
cd "$here"
npm ci --omit=optional --no-audit --no-fund --include=dev
npm test
npm run build
if [ -n "$target" ]; then
    npx --no-install vsce package --no-dependencies --target "$target" --out dist/
else
    npx --no-install vsce package --no-dependencies --out dist/
fi
ls dist/*.vsix
