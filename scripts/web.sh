#!/usr/bin/env bash
# Tests the web app in a browser: web.sh smoke | all | services
#
# `smoke` takes at most four minutes. If Node.js or Chromium is missing, `smoke` is skipped and `all`
# fails. The binary is SAVOIR_BIN, or target/debug/savoir.
set -euo pipefail
cd "$(dirname "$0")/.."
what="${1:-all}"

skip() {
	if [ "$what" = smoke ]; then
		echo "skipped: the web app is not tested, because $1" >&2
		echo "hint: $2" >&2
		exit 0
	fi
	echo "error: the web app cannot be tested, because $1" >&2
	echo "hint: $2" >&2
	exit 1
}

for program in node npm; do
	command -v "$program" >/dev/null 2>&1 ||
		skip "$program is not installed" "install it (Debian: apt-get install nodejs npm) and run this again"
done
# The bundler needs a newer Node.js than some systems have.
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
	newer="$(scripts/node.sh)" || skip "Node.js $(node --version) is too old" "install version 20.19 or newer"
	PATH="$newer:$PATH"
fi

for program in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
	if [ -n "$program" ] && command -v "$program" >/dev/null 2>&1; then
		CHROMIUM="$(command -v "$program")"
		export CHROMIUM
		break
	fi
done
[ -x "${CHROMIUM:-}" ] ||
	skip "Chromium is not installed" "install it (Debian: apt-get install chromium), or set CHROMIUM to its path"

binary="${SAVOIR_BIN:-${CARGO_TARGET_DIR:-target}/debug/savoir}"
if [ ! -x "$binary" ]; then
	echo "error: there is no binary $binary" >&2
	echo "hint: build it with \`cargo build\`, or set SAVOIR_BIN" >&2
	exit 1
fi
SAVOIR_BIN="$(realpath "$binary")"
export SAVOIR_BIN

cd ui
# npm writes the second file after it has installed the packages of the first one.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
	npm ci --no-audit --no-fund ||
		skip "its packages cannot be downloaded" "run \`npm ci\` in ui/ to see why"
fi

# The web app that is embedded in the binary.
export SAVOIR_UI_DIRECT="${SAVOIR_UI_DIRECT-1}"

node scripts/check-dist.mjs
if [ "$what" = smoke ]; then
	exec timeout --kill-after=10 180 node --import tsx --test tests/smoke.test.ts
fi
if [ "$what" = services ]; then
	# The flows that store something, and a real model. Tools of skills run only from a folder.
	export SAVOIR_UI_SERVICES=1
	exec node --import tsx --test --test-concurrency=1 \
		tests/{smoke,skills,knowledge,workflows,catalog,oidc,real-model}.test.ts
fi
npm run --silent check
npm run --silent size
# On a busy machine, a page can be late, so a failed test is repeated once. The repetition is printed,
# because a test that needs two attempts is a bug, too.
failed=()
for file in tests/*.test.ts; do
	node --import tsx --test "$file" || { echo "again: $file" >&2; node --import tsx --test "$file" || failed+=("$file"); }
done
if [ "${#failed[@]}" -gt 0 ]; then
	echo "error: these tests of the web app fail: ${failed[*]}" >&2
	exit 1
fi
