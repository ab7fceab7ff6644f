#!/usr/bin/env bash
# Makes sure that what the tests need is there. Debian packages are installed only by root;
# anyone else is told what to install.
set -euo pipefail

missing=()
command -v cc >/dev/null 2>&1 || missing+=(build-essential)
command -v git >/dev/null 2>&1 || missing+=(git)

if [ "${#missing[@]}" -gt 0 ]; then
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
	else
		echo "please install: ${missing[*]}" >&2
		exit 1
	fi
fi

if ! command -v cargo >/dev/null 2>&1; then
	echo "please install Rust 1.95 or newer with rustfmt and clippy, for example with rustup" >&2
	exit 1
fi
for component in fmt clippy; do
	if ! cargo "$component" --version >/dev/null 2>&1; then
		echo "please install cargo $component (rustup component add rustfmt clippy)" >&2
		exit 1
	fi
done
