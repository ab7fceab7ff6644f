#!/usr/bin/env bash
# Runs a command beside the real servers that tests talk to: services.sh COMMAND…
#
# Each script in services/ is started with a folder of its own. It puts its programs into the
# background, writes their process ids into the file `pids` there, and prints the variables that
# tell tests where they are, as NAME=value. A service that cannot be started says why in a line that
# is easy to see, and its tests say that they were skipped.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/savoir-services.XXXXXX")"
chmod 755 "$work"

stop() {
	for pids in "$work"/*/pids; do
		[ -f "$pids" ] || continue
		while read -r pid; do kill "$pid" 2>/dev/null; done <"$pids"
	done
	for pids in "$work"/*/pids; do
		[ -f "$pids" ] || continue
		while read -r pid; do
			for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
			kill -9 "$pid" 2>/dev/null
		done <"$pids"
	done
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

for service in "$here"/services/*.sh; do
	name="$(basename "$service" .sh)"
	mkdir "$work/$name"
	if variables="$("$service" "$work/$name" 2>"$work/$name/log")"; then
		while IFS='=' read -r key value; do
			[ -n "$key" ] && export "$key=$value"
		done <<<"$variables"
		# What is missing although the service runs.
		grep '^===' "$work/$name/log" >&2
	else
		echo "=== NOT STARTED: $name; its tests are skipped ===" >&2
		tail -n 5 "$work/$name/log" >&2
	fi
done

"$@"
