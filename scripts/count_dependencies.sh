#!/bin/sh
# Fails if a crate has more than MAX dependencies: count_dependencies.sh CRATE MAX [OPTION…]
#
# Counts only normal dependencies, not those of tests and build scripts.
set -eu
crate=$1
most=$2
shift 2
count=$("${CARGO:-cargo}" tree --locked --package "$crate" --edges normal --prefix none --format '{p}' "$@" |
	sed 's/ (.*//' | sort -u | grep -vc "^$crate ")
if [ "$count" -gt "$most" ]; then
	echo "error: $crate $* has $count dependencies, more than $most" >&2
	echo "hint: see them with: cargo tree --package $crate --edges normal $*" >&2
	exit 1
fi
echo "$crate $*: $count dependencies, at most $most"
