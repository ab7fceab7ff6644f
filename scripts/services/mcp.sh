#!/usr/bin/env bash
# Installs third-party clients of the Model Context Protocol: the official Python client, and from npm
# an old and a new release of the Inspector, and the official conformance tests. Starts no process:
# mcp.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$("$here/../venv.sh" "$here/mcp.txt")"
echo "SAVOIR_TEST_MCP_PYTHON=$place/bin/python"

# Install into a temporary folder and rename it, so that an existing folder is always complete.
inspector="$cache/mcp-inspector-0.15.0"
install() {
	local new="$inspector.new"
	rm -rf "$new"
	mkdir -p "$new"
	npm install --prefix "$new" --no-audit --no-fund --ignore-scripts --save-exact \
		@modelcontextprotocol/inspector@0.15.0
	mv "$new" "$inspector"
}
if ! command -v npm >/dev/null; then
	echo "=== NOT INSTALLED: npm, so the MCP Inspector and the conformance tests are skipped ===" >&2
	exit 0
fi
exec 9>"$cache/mcp-inspector.lock"
flock 9
if [ -d "$inspector" ] || install >&2; then
	echo "SAVOIR_TEST_MCP_INSPECTOR=$inspector/node_modules/.bin/mcp-inspector"
else
	echo "=== NOT INSTALLED: the MCP Inspector ===" >&2
fi
exec 9>&-

if node="$("$here/../node.sh")" && newer="$("$here/../npm.sh" "$here/npm/mcp")"; then
	echo "SAVOIR_TEST_NODE=$node"
	echo "SAVOIR_TEST_MCP_CONFORMANCE=$newer/node_modules/.bin/conformance"
	echo "SAVOIR_TEST_MCP_INSPECTOR_NEW=$newer/node_modules/.bin/mcp-inspector"
else
	echo "=== NOT INSTALLED: the MCP conformance tests and the new MCP Inspector ===" >&2
fi
