#!/usr/bin/env bash
# Prints the folder of a Python environment with what a file of requirements names, and makes it
# first if there is none. Several may ask at once: venv.sh REQUIREMENTS
set -euo pipefail
requirements="$1"
name="$(basename "$requirements" .txt)"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$cache/$name-$(cat "$requirements" <(python3 --version) | sha256sum | cut -c 1-12)"
mkdir -p "$cache"

(
	flock 9
	[ ! -f "$place/done" ] || exit 0
	# An environment cannot be moved, so a mark tells whether it is whole.
	rm -rf "$place"
	python3 -m venv "$place"
	"$place/bin/python" -m pip install --quiet --no-deps --require-hashes \
		--requirement "$requirements"
	touch "$place/done"
) 9>"$cache/$name.lock" >&2

echo "$place"
