#!/usr/bin/env bash
# Starts aimock (from npm), a scripted model server that supports many protocols, including Ollama's.
set -euo pipefail
work="$1"
here="$(cd "$(dirname "$0")" && pwd)"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
home="$cache/aimock-1.43.0"

# Install into a temporary folder and rename it, so that an existing folder is always complete.
install() {
	local new="$home.new"
	rm -rf "$new"
	mkdir -p "$new"
	npm install --prefix "$new" --no-audit --no-fund --ignore-scripts --save-exact \
		@copilotkit/aimock@1.43.0
	mv "$new" "$home"
}

command -v node >/dev/null || { echo "node is not installed" >&2; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/aimock.lock"
flock 9
if [ ! -d "$home" ]; then
	install >&2
fi
exec 9>&-

node "$home/node_modules/.bin/llmock" --host 127.0.0.1 --port 0 --chunk-size 8 \
	--fixtures "$here/aimock.json" >"$work/server.log" 2>&1 &
pid=$!
echo "$pid" >"$work/pids"
for _ in $(seq 300); do
	url="$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/server.log" | head -n 1 || true)"
	[ -n "$url" ] && break
	kill -0 "$pid" 2>/dev/null || { tail -n 5 "$work/server.log" >&2; exit 1; }
	sleep 0.1
done
[ -n "$url" ] || { echo "aimock did not start within half a minute" >&2; exit 1; }

echo "SAVOIR_TEST_AIMOCK=$url"
# For tests that start aimock themselves with their own script.
echo "SAVOIR_TEST_AIMOCK_PROGRAM=$home/node_modules/.bin/llmock"
