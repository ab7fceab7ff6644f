#!/bin/sh
# Install savoir from a release on GitHub.
#
#   sh install.sh [--to DIR] [--version V]
#
# It downloads the archive for this machine, compares it with SHA256SUMS of the release, and copies
# the program into DIR [default: ~/.local/bin]. It changes nothing else and needs no root.
# SAVOIR_INSTALL_URL replaces the address of the releases, for example for a mirror.
set -eu

REPOSITORY=https://github.com/savoir-dev/savoir

say() { printf '%s\n' "$*"; }

fail() {
	printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
	exit 1
}

usage() {
	say "Install savoir from a release on GitHub"
	say ""
	say "Usage: sh install.sh [--to DIR] [--version V]"
	say ""
	say "  --to DIR       folder for the program [default: ~/.local/bin]"
	say "  --version V    version to install, such as 0.1.0 [default: the latest]"
	say ""
	say "SAVOIR_INSTALL_URL replaces $REPOSITORY/releases."
}

have() { command -v "$1" >/dev/null 2>&1; }

# The name that Rust uses for this machine.
find_target() {
	system=$(uname -s)
	machine=$(uname -m)
	case $machine in
	x86_64 | amd64) machine=x86_64 ;;
	aarch64 | arm64) machine=aarch64 ;;
	*) fail "there is no binary for the processor $machine" "build savoir from source: $REPOSITORY#install" ;;
	esac
	case $system in
	Linux)
		if have ldd && ldd --version 2>&1 | grep -qi musl; then
			fail "savoir needs glibc, and this system has musl" "build savoir from source: $REPOSITORY#install"
		fi
		target=$machine-unknown-linux-gnu
		;;
	Darwin) target=$machine-apple-darwin ;;
	MINGW* | MSYS* | CYGWIN*)
		fail "there is no binary for Windows" "use Linux or macOS"
		;;
	*) fail "there is no binary for $system" "build savoir from source: $REPOSITORY#install" ;;
	esac
}

# download ADDRESS FILE
download() {
	if have curl; then
		if [ -n "${SAVOIR_INSTALL_URL:-}" ]; then
			curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
		else
			curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --retry 3 --output "$2" "$1"
		fi
	elif have wget; then
		wget --quiet --output-document="$2" "$1"
	else
		fail "neither curl nor wget is installed" "install one of them and run this script again"
	fi
}

sha256() {
	if have sha256sum; then
		sha256sum "$1" | cut -d ' ' -f 1
	elif have shasum; then
		shasum -a 256 "$1" | cut -d ' ' -f 1
	elif have openssl; then
		openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
	else
		fail "no program for SHA-256 is installed" "install sha256sum, shasum or openssl and run this script again"
	fi
}

main() {
	to=
	version=
	while [ $# -gt 0 ]; do
		case $1 in
		--to | --version)
			[ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value" "run: sh install.sh --help"
			case $1 in
			--to) to=$2 ;;
			--version) version=${2#v} ;;
			esac
			shift 2
			;;
		-h | --help)
			usage
			exit 0
			;;
		*) fail "unknown argument $1" "run: sh install.sh --help" ;;
		esac
	done
	case $version in
	*[!0-9A-Za-z.-]*) fail "$version is not a version" "use a version such as 0.1.0" ;;
	esac
	if [ -z "$to" ]; then
		[ -n "${HOME:-}" ] || fail "HOME is not set" "name a folder: sh install.sh --to DIR"
		to=$HOME/.local/bin
	fi

	find_target
	base=${SAVOIR_INSTALL_URL:-$REPOSITORY/releases}
	base=${base%/}

	work=$(mktemp -d) || fail "cannot create a temporary folder" "set TMPDIR to a folder that you can write to"
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' INT TERM HUP

	# The list of checksums also says which version is the latest.
	if [ -n "$version" ]; then
		sums=$base/download/v$version/SHA256SUMS
	else
		sums=$base/latest/download/SHA256SUMS
	fi
	download "$sums" "$work/SHA256SUMS" ||
		fail "cannot download $sums" "check your connection and the version; releases: $REPOSITORY/releases"

	line=$(grep -E "^[0-9a-f]{64} [ *]savoir-${version:-[0-9][0-9A-Za-z.-]*}-$target\.tar\.gz$" "$work/SHA256SUMS") ||
		fail "the release has no archive for $target" "build savoir from source: $REPOSITORY#install"
	[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] ||
		fail "the release has more than one archive for $target" "name a version: sh install.sh --version V"
	expected=${line%% *}
	file=${line##* }
	file=${file#\*}
	name=${file%.tar.gz}
	version=${name#savoir-}
	version=${version%-"$target"}

	say "downloading savoir $version for $target"
	download "$base/download/v$version/$file" "$work/$file" ||
		fail "cannot download $base/download/v$version/$file" "check your connection and run this script again"

	actual=$(sha256 "$work/$file")
	[ "$actual" = "$expected" ] ||
		fail "the checksum of $file is $actual, not $expected" \
			"nothing was installed; try again, and report it at $REPOSITORY/issues if it stays"

	tar -xzf "$work/$file" -C "$work" "$name/savoir" ||
		fail "cannot unpack $file" "check that tar and gzip are installed and that the disk is not full"
	found=$("$work/$name/savoir" --version 2>"$work/log") || {
		cat "$work/log" >&2
		fail "savoir $version does not run on this machine" \
			"it needs glibc 2.28 or newer on Linux, and a temporary folder in which programs may run (set TMPDIR)"
	}

	# Copy first and rename then, so that a running savoir is replaced without a gap.
	if ! { mkdir -p "$to" && cp "$work/$name/savoir" "$to/.savoir.new.$$"; } 2>/dev/null; then
		rm -f "$to/.savoir.new.$$" 2>/dev/null || :
		fail "cannot write to $to" "choose a folder that you can write to: sh install.sh --to DIR"
	fi
	chmod 755 "$to/.savoir.new.$$"
	mv -f "$to/.savoir.new.$$" "$to/savoir"
	say "installed $found as $to/savoir"

	case :${PATH:-}: in
	*:"$to":*) ;;
	*) say "hint: add it to your path: export PATH=\"$to:\$PATH\"" ;;
	esac
}

# At the end of the file, so that a script that was cut off while downloading does nothing.
main "$@"
