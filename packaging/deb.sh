#!/bin/sh
# Write a Debian package from a Linux binary. The same binary and sources give identical bytes.
#
#   packaging/deb.sh BINARY OUT_DIR
#
# SAVOIR_RUN is a binary that runs on this machine, if BINARY does not [default: BINARY].
set -eu

[ $# -eq 2 ] || { echo "usage: packaging/deb.sh BINARY OUT_DIR" >&2; exit 2; }
binary=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v dpkg-deb >/dev/null; then
	echo "error: dpkg-deb is not installed" >&2
	echo "hint: build the Debian package on Debian or Ubuntu, or install dpkg" >&2
	exit 1
fi

# 0.2.0-rc.1 becomes 0.2.0~rc.1, which Debian sorts before 0.2.0.
version=$(python3 "$here/project.py" version | sed 's/-/~/')
repository=$(python3 "$here/project.py" repository)
arch=$(python3 "$here/project.py" debian-arch "$binary")
depends=$(python3 "$here/project.py" debian-depends "$binary")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
umask 022

"$here/contents.sh" "$binary" "$work/contents"
cd "$work"
package=$work/package
doc=$package/usr/share/doc/savoir
mkdir -p "$package/DEBIAN" "$doc"
install -D -m 755 contents/savoir "$package/usr/bin/savoir"
install -D -m 644 contents/completions/savoir.bash "$package/usr/share/bash-completion/completions/savoir"
install -D -m 644 contents/completions/_savoir "$package/usr/share/zsh/vendor-completions/_savoir"
install -D -m 644 contents/completions/savoir.fish "$package/usr/share/fish/vendor_completions.d/savoir.fish"
mkdir -p "$package/usr/share/man/man1"
cp contents/man/* "$package/usr/share/man/man1"
gzip -9 -n "$package"/usr/share/man/man1/*
install -m 644 contents/README.md "$doc/README.md"
install -m 644 contents/THIRD-PARTY-NOTICES "$doc/THIRD-PARTY-NOTICES"
gzip -9 -n <contents/CHANGELOG.md >"$doc/changelog.gz"

{
	cat <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: savoir
Source: $repository

Files: *
Copyright: The Savoir authors
License: Expat or Apache-2.0

License: Expat
END
	# The text after the copyright line, indented; empty lines become a dot.
	sed -n '/^Permission/,$p' contents/LICENSE-MIT | sed 's/^/ /; s/^ $/ ./'
	cat <<'END'

License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
END
} >"$doc/copyright"

cat >"$package/DEBIAN/control" <<END
Package: savoir
Version: $version
Architecture: $arch
Maintainer: The Savoir authors <noreply@savoir.invalid>
Installed-Size: $(du -sk --apparent-size "$package/usr" | cut -f1)
Depends: $depends
Recommends: ca-certificates, git
Suggests: python3, python3-venv
Section: devel
Priority: optional
Homepage: $repository
Description: check, install, run and share agent skills
 Savoir reads agent skills (SKILL.md) of ten dialects, reports and fixes
 mistakes, converts skills between agents, installs them with a lockfile,
 scans them for malicious behavior, and runs their tools in a sandbox.
END
(cd "$package" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$package/DEBIAN/md5sums"

# dpkg-deb takes the time of the archive from SOURCE_DATE_EPOCH, and that of each file from the file.
find "$package" -exec touch --no-dereference --date=@315532800 {} +
SOURCE_DATE_EPOCH=315532800 dpkg-deb --root-owner-group -Zxz --build "$package" "$out/savoir_${version}_$arch.deb" >/dev/null
echo "$out/savoir_${version}_$arch.deb"
