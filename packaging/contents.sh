#!/bin/sh
# Collect what a package for people contains: the binary, completions, manual pages, licenses, README.
#
#   packaging/contents.sh BINARY DIR
#
# Used by tarball.sh and deb.sh. SAVOIR_RUN is a binary that runs on this machine [default: BINARY].
set -eu

[ $# -eq 2 ] || { echo "usage: packaging/contents.sh BINARY DIR" >&2; exit 2; }
binary=$1
dir=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

case ${SAVOIR_RUN:-$binary} in
*/*) run=${SAVOIR_RUN:-$binary} ;;
*) run=./${SAVOIR_RUN:-$binary} ;;
esac
version=$(python3 "$here/project.py" version)
if ! found=$("$run" --version) || [ "$found" != "savoir $version" ]; then
	echo "error: $run prints \"${found:-}\" as its version, not \"savoir $version\"" >&2
	echo "hint: build it from this checkout; for another platform, set SAVOIR_RUN to a binary that runs here" >&2
	exit 1
fi

umask 022
mkdir -p "$dir/completions" "$dir/man"
cp "$binary" "$dir/savoir"
chmod 755 "$dir/savoir"
"$run" completions bash >"$dir/completions/savoir.bash"
"$run" completions zsh >"$dir/completions/_savoir"
"$run" completions fish >"$dir/completions/savoir.fish"
"$run" man --output "$dir/man" >/dev/null
for file in LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md; do
	cp "$root/$file" "$dir/$file"
	chmod 644 "$dir/$file"
done
python3 "$here/notices.py" >"$dir/THIRD-PARTY-NOTICES"
