#!/usr/bin/env bash
# Starts an S3 server that stores data only in memory: s3.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
place="$("$here/../venv.sh" "$here/s3.txt")"

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
