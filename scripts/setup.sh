#!/usr/bin/env bash
# Installs what the tests need. Only root can install Debian packages; for other users, this prints the
# names of missing packages.
set -euo pipefail

missing=()
{ command -v cc && command -v c++; } >/dev/null 2>&1 || missing+=(build-essential)
for program in git python3 curl; do
	command -v "$program" >/dev/null 2>&1 || missing+=("$program")
done
# bubblewrap, which some tests and benchmarks compare with our sandbox.
command -v bwrap >/dev/null 2>&1 || missing+=(bubblewrap)
# Python tools need venv. Tests of interactive prompts need script.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
command -v script >/dev/null 2>&1 || missing+=(bsdutils)
# A keyring daemon and a program that reads the keyring; without them, the keyring tests are skipped.
if [ "$(id -u)" -eq 0 ]; then
	command -v gnome-keyring-daemon >/dev/null 2>&1 || missing+=(gnome-keyring)
	command -v dbus-daemon >/dev/null 2>&1 || missing+=(dbus)
	command -v secret-tool >/dev/null 2>&1 || missing+=(libsecret-tools)
	# A browser, and Node.js and npm to build the web app; without them, the tests of the web app are skipped.
	command -v node >/dev/null 2>&1 || missing+=(nodejs)
	command -v npm >/dev/null 2>&1 || missing+=(npm)
	command -v chromium >/dev/null 2>&1 || missing+=(chromium)
	# An editor for tests of the language server (25 MB).
	command -v nvim >/dev/null 2>&1 || missing+=(neovim)
fi
# PostgreSQL, for tests that run on both databases.
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)

if [ "${#missing[@]}" -gt 0 ]; then
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
	else
		echo "please install: ${missing[*]}" >&2
		exit 1
	fi
fi

needed=1.95
if ! command -v cargo >/dev/null 2>&1; then
	echo "please install Rust $needed or newer with rustfmt and clippy, for example with rustup" >&2
	exit 1
fi
version="$(rustc --version | cut -d ' ' -f 2)"
if [ "$(printf '%s\n' "$needed" "$version" | sort -V | head -n 1)" != "$needed" ]; then
	echo "Rust $version is too old; please install $needed or newer (rustup update stable)" >&2
	exit 1
fi

components_are_there() {
	cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1
}
if ! components_are_there && command -v rustup >/dev/null 2>&1; then
	rustup component add rustfmt clippy
fi
if ! components_are_there; then
	echo "please install rustfmt and clippy for Rust $version" >&2
	exit 1
fi
