#!/bin/sh
# Write SHA256SUMS for every package in a folder.
#
#   packaging/checksums.sh OUT_DIR
set -eu

[ $# -eq 1 ] || { echo "usage: packaging/checksums.sh OUT_DIR" >&2; exit 2; }
cd "$1"

rm -f SHA256SUMS
# shellcheck disable=SC2035 # no package name starts with a dash
LC_ALL=C sha256sum * >.SHA256SUMS.new
mv .SHA256SUMS.new SHA256SUMS
