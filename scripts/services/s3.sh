#!/usr/bin/env bash
# An S3 server that forgets everything when it ends: s3.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
place="$cache/s3-$(cat "$here/s3.txt" <(python3 --version) | sha256sum | cut -c 1-12)"
mkdir -p "$cache"
touch "$work/pids"

(
	flock 9
	[ ! -f "$place/done" ] || exit 0
	# An environment cannot be moved, so a mark tells whether it is whole.
	rm -rf "$place"
	python3 -m venv "$place"
	"$place/bin/python" -m pip install --quiet --no-deps --require-hashes --requirement "$here/s3.txt"
	touch "$place/done"
) 9>"$cache/s3.lock" >&2

for _ in 1 2 3; do
	port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
	setsid "$place/bin/moto_server" -H 127.0.0.1 -p "$port" >"$work/server.log" 2>&1 </dev/null &
	pid=$!
	for _ in $(seq 300); do
		if curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/moto-api/" >/dev/null 2>&1; then
			echo "$pid" >>"$work/pids"
			echo "SAVOIR_TEST_S3=http://127.0.0.1:$port"
			exit 0
		fi
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill "$pid" 2>/dev/null || true
done
tail -n 5 "$work/server.log" >&2
exit 1
