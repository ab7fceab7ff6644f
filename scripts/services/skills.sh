#!/usr/bin/env bash
# Installs other skill installers from npm: `npx skills` and ClawHub's. Starts no process:
# skills.sh FOLDER
set -euo pipefail
work="$1"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
touch "$work/pids"

command -v node >/dev/null || { echo "node is not installed" >&2; exit 1; }
command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 1; }

# The newer release does not start on older versions of Node.js.
skills=1.5.18
if node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 20) ? 0 : 1)'; then
	skills=1.7.4
fi
clawhub=0.23.3
home="$cache/skills-$skills-$clawhub"

# Install into a temporary folder and rename it, so that an existing folder is always complete.
install() {
	local new="$home.new"
	rm -rf "$new"
	mkdir -p "$new"
	npm install --prefix "$new" --no-audit --no-fund --ignore-scripts --save-exact \
		"skills@$skills" "clawhub@$clawhub"
	mv "$new" "$home"
}

mkdir -p "$cache"
exec 9>"$cache/skills.lock"
flock 9
if [ ! -d "$home" ]; then
	install >&2
fi
exec 9>&-

echo "SAVOIR_TEST_SKILLS=$home/node_modules/.bin"
