#!/usr/bin/env bash
# Starts the servers that tests need, runs a command, and stops the servers: services.sh COMMAND…
#
# Each script in services/ gets the path of a new folder. It starts its programs in the background,
# writes their process ids into the file `pids` in that folder, and prints environment variables with
# their addresses, as NAME=value. If a service cannot be started, this prints why, and its tests are
# skipped.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/savoir-services.XXXXXX")"
chmod 755 "$work"

stop() {
	jobs -p | xargs --no-run-if-empty kill 2>/dev/null
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

# Installing services from nothing takes minutes, so they start at the same time.
names=()
for service in "$here"/services/*.sh; do
	name="$(basename "$service" .sh)"
	# SERVICES="postgres s3" starts only these.
	[[ -z "${SERVICES:-}" || " $SERVICES " == *" $name "* ]] || continue
	mkdir "$work/$name"
	names+=("$name")
	("$service" "$work/$name" >"$work/$name/variables" 2>"$work/$name/log" && touch "$work/$name/started") &
done
# MEANWHILE="cargo build" runs while the services start; most of the time they wait for the network.
if [ -n "${MEANWHILE:-}" ] && ! $MEANWHILE; then
	exit 1
fi
wait

for name in "${names[@]}"; do
	if [ -f "$work/$name/started" ]; then
		while IFS='=' read -r key value; do
			[ -n "$key" ] && export "$key=$value"
		done <"$work/$name/variables"
		# The service runs, but parts of it are missing.
		grep '^===' "$work/$name/log" >&2
	else
		echo "=== NOT STARTED: $name; its tests are skipped ===" >&2
		tail -n 5 "$work/$name/log" >&2
	fi
done

"$@"
