#!/usr/bin/env bash
# Prints a folder with the npm packages of a lockfile, and installs them first if necessary. Can run
# several times concurrently: npm.sh LOCK, where LOCK is a folder with package-lock.json
set -euo pipefail
lock="$1"
name="$(basename "$lock")"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$cache/npm-$name-$(cat "$lock/package.json" "$lock/package-lock.json" | sha256sum | cut -c 1-12)"

command -v npm >/dev/null || { echo "npm is not installed" >&2; exit 1; }
mkdir -p "$cache"

(
	flock 9
	[ ! -d "$place" ] || exit 0
	# Install into a temporary folder and rename it, so that an existing folder is always complete.
	rm -rf "$place.new"
	mkdir "$place.new"
	cp "$lock/package.json" "$lock/package-lock.json" "$place.new"
	npm ci --prefix "$place.new" --no-audit --no-fund --ignore-scripts
	mv "$place.new" "$place"
) 9>"$cache/npm-$name.lock" >&2

echo "$place"
