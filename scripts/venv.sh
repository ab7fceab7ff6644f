#!/usr/bin/env bash
# Prints the folder of a Python environment with the packages of a requirements file, and creates it
# first if necessary. Can run several times concurrently: venv.sh REQUIREMENTS
set -euo pipefail
requirements="$1"
name="$(basename "$requirements" .txt)"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$cache/$name-$(cat "$requirements" <(python3 --version) | sha256sum | cut -c 1-12)"
mkdir -p "$cache"

(
	flock 9
	[ ! -f "$place/done" ] || exit 0
	# A virtual environment cannot be renamed, so a marker file shows that it is complete.
	rm -rf "$place"
	python3 -m venv "$place"
	"$place/bin/python" -m pip install --quiet --no-compile --no-deps --require-hashes \
		--requirement "$requirements"
	touch "$place/done"
) 9>"$cache/$name.lock" >&2

echo "$place"
