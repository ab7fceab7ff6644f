#!/bin/sh
# Build savoir and all packages for this machine: `make dist`.
#
#   packaging/dist.sh [OUT_DIR]      [default: target/dist-packages]
#
# Variables:
#   BINARY   package this binary instead of building one
#   NATIVE   its native module for Python [default: the one beside BINARY]
#   GLIBC    oldest glibc to build for, such as 2.28; needs cargo-zigbuild and zig (both are on PyPI).
#            Without it, the packages need the glibc of this machine or a newer one.
#   CARGO    another cargo
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "${1:-$target/dist-packages}"
out=$(cd "${1:-$target/dist-packages}" && pwd)
cargo=${CARGO:-cargo}

binary=${BINARY:-}
if [ -z "$binary" ]; then
	cd "$root"
	if [ -n "${GLIBC:-}" ]; then
		triple=$(uname -m)-unknown-linux-gnu
		"$cargo" zigbuild --profile dist --locked --package savoir --package savoir-python --target "$triple.$GLIBC"
		binary=$target/$triple/dist/savoir
	else
		"$cargo" build --profile dist --locked --package savoir --package savoir-python
		binary=$target/dist/savoir
	fi
fi

# Packages of another version must not end up in SHA256SUMS.
rm -f "$out"/savoir[-_]*.whl "$out"/savoir-*.tgz "$out"/savoir-*.tar.gz "$out"/savoir_*.deb "$out"/savoir-*.vsix "$out/SHA256SUMS"
python3 "$here/wheel.py" "$binary" "$out" --glibc "${GLIBC:-auto}" ${NATIVE:+--native "$NATIVE"}
python3 "$here/npm.py" "$binary" "$out"
"$here/tarball.sh" "$binary" "$out"
if command -v dpkg-deb >/dev/null; then
	"$here/deb.sh" "$binary" "$out"
else
	echo "note: dpkg-deb is not installed, so no Debian package was built" >&2
fi
if command -v npm >/dev/null; then
	python3 "$here/vsix.py" "$out" --binary "$binary"
else
	echo "note: npm is not installed, so no extension for VS Code was built" >&2
fi
"$here/checksums.sh" "$out"
echo "$out/SHA256SUMS"
