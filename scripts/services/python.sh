#!/usr/bin/env bash
# Python with clients that others wrote: schemathesis, which holds a server against its OpenAPI
# document, the client of OpenAI, and one for server-sent events. Nothing runs: python.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$cache/python-$(cat "$here/python.txt" <(python3 --version) | sha256sum | cut -c 1-12)"
mkdir -p "$cache"
touch "$work/pids"

(
	flock 9
	[ ! -f "$place/done" ] || exit 0
	# An environment cannot be moved, so a mark tells whether it is whole.
	rm -rf "$place"
	python3 -m venv "$place"
	"$place/bin/python" -m pip install --quiet --no-deps --require-hashes \
		--requirement "$here/python.txt"
	touch "$place/done"
) 9>"$cache/python.lock" >&2

echo "SAVOIR_TEST_PYTHON=$place/bin/python"
