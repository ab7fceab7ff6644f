#!/usr/bin/env bash
# Install every package into an empty environment, without a network, and run savoir there.
#
#   packaging/test.sh OUT_DIR [TEST...]     [default: all tests]
#
# OUT_DIR is the folder that packaging/dist.sh wrote. A test whose program is missing (npm, dpkg-deb)
# is reported as skipped.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: packaging/test.sh OUT_DIR [TEST...]" >&2; exit 2; }
out=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
version=$(python3 "$here/project.py" version)
work=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	rm -rf "$work"
}
trap cleanup EXIT

# The interpreters themselves: a shim on the path may need the whole environment.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
node=$(command -v node || :)
npm=$(command -v npm || :)
[ -z "$npm" ] || npm=$(readlink -f "$npm")

cp -R "$root/examples" "$work/examples"
mkdir -p "$work/broken/demo"
printf -- '---\nname: demo\ndescription: one: two\n---\n# Demo\n' >"$work/broken/demo/SKILL.md"
skills=$(find "$work/examples" -name SKILL.md | wc -l)

failures=0
problem() {
	echo "    failed: $*" >&2
	failures=$((failures + 1))
}

# clean PATH COMMAND...: run a command with an empty home, nothing but PATH, and no network settings.
clean() {
	local path=$1
	shift
	rm -rf "${work:?}/home"
	mkdir -p "$work/home"
	(cd "${folder:-$work}" && env -i PATH="$path" HOME="$work/home" LC_ALL=C.UTF-8 TMPDIR="$work" "$@")
}

# expect STATUS PATTERN COMMAND...: compare the exit code, and search the output for the text PATTERN.
expect() {
	local status=$1 pattern=$2 found=0
	shift 2
	"$@" >"$work/output" 2>&1 || found=$?
	if [ "$found" -ne "$status" ]; then
		problem "exit code $found instead of $status: $*"
		sed 's/^/    | /' "$work/output" >&2
	elif ! grep -qF -- "$pattern" "$work/output"; then
		problem "no \"$pattern\" in the output of: $*"
		sed 's/^/    | /' "$work/output" >&2
	fi
}

# also PATTERN: search the same output for another text.
also() {
	grep -qF -- "$1" "$work/output" || { problem "no \"$1\" in the same output"; sed 's/^/    | /' "$work/output" >&2; }
}

# runs PATH COMMAND...: savoir prints its version, accepts the examples and reports a broken skill.
runs() {
	expect 0 "savoir $version" clean "$@" --version
	expect 0 "checked $skills skills: all fine" clean "$@" check examples
	expect 1 "unquoted-colon" clean "$@" check broken
	expect 2 "does-not-exist" clean "$@" check does-not-exist
}

test_readers() {
	"$python" -m unittest --quiet "$here/test_readers.py" 2>"$work/log" || { problem "test_readers.py"; cat "$work/log" >&2; }
}

test_wheel() {
	"$python" -m venv "$work/venv"
	expect 0 "Successfully installed savoir-skills" \
		clean /usr/bin:/bin "$work/venv/bin/python" -m pip install --no-index --disable-pip-version-check "$out"/*.whl
	runs /nonexistent "$work/venv/bin/savoir"
	python_package
	# `pip show -f` reads RECORD.
	expect 0 "['MIT OR Apache-2.0', '$(python3 "$here/project.py" description)']" clean /usr/bin:/bin "$work/venv/bin/python" -c \
		'from importlib.metadata import metadata as m; print([m("savoir-skills")[k] for k in ("License-Expression", "Summary")])'
	expect 0 "savoir_skills-$version.dist-info/licenses/THIRD-PARTY-NOTICES" \
		clean /usr/bin:/bin "$work/venv/bin/python" -m pip --disable-pip-version-check show -f savoir-skills
	clean /usr/bin:/bin "$work/venv/bin/python" -m pip --disable-pip-version-check uninstall --yes --quiet savoir-skills
	[ ! -e "$work/venv/bin/savoir" ] || problem "pip uninstall left savoir behind"

	# A tag for an older system than the binary needs is refused.
	local needed
	needed=$(python3 "$here/project.py" glibc "$(unpacked)/savoir")
	if [ -n "$needed" ]; then
		expect 1 "the binary needs glibc" python3 "$here/wheel.py" "$(unpacked)/savoir" "$work/old" \
			--native "$(native)" --glibc 2.1
	fi
}

# The package of the wheel: the native module, and a run in the sandbox by the program of the wheel.
python_package() {
	expect 0 "say_hello Hello, Ada! True" clean /usr/bin:/bin "$work/venv/bin/python" -c '
import savoir_skills as s, importlib.util, pathlib
s.check("examples").raise_for_errors()
skill = s.read("examples/hello-world")
greeting = s.run("examples/hello-world/say_hello", {"name": "Ada"}, approve=lambda asked: True).value["greeting"]
typed = (pathlib.Path(s.__file__).parent / "py.typed").exists()
print(skill.tools[0]["name"], greeting, typed and not importlib.util.find_spec("gaia"))'
	expect 1 "unquoted-colon" clean /nonexistent "$work/venv/bin/python" -c \
		'import savoir_skills as s; s.check("broken").raise_for_errors()'
}

test_npm() {
	[ -n "$npm" ] || { skip "npm is not installed"; return; }
	local platform main prefix=$work/prefix path
	platform=$(echo "$out"/savoir-*-*-"$version".tgz)
	main=$out/savoir-$version.tgz
	path=$(dirname "$node")
	mkdir -p "$prefix" "$work/only-node"
	ln -sf "$node" "$work/only-node/node"
	expect 0 "added 2 packages" clean "$path:/usr/bin:/bin" "$node" "$npm" install --offline --no-audit --no-fund --ignore-scripts \
		--prefix "$prefix" "$main" "$platform"
	runs "$work/only-node" "$prefix/node_modules/.bin/savoir"

	# Standard input, and the signal that ended the binary.
	expect 0 "checked 1 skill" clean "$work/only-node" "$prefix/node_modules/.bin/savoir" check "$work/examples/hello-world/SKILL.md"
	launcher_signals "$prefix/node_modules/.bin/savoir"

	# Without the package of the platform.
	rm -rf "$prefix/node_modules/@savoir"
	expect 1 "hint: run \`npm install savoir\` again" clean "$work/only-node" "$prefix/node_modules/.bin/savoir" --version
}

# The launcher passes SIGTERM on to `savoir serve`, and reports how it ended.
launcher_signals() {
	local pid status=0 tries=0
	: >"$work/serve.log"
	env -i PATH="$work/only-node" HOME="$work/home" "$1" serve --address 127.0.0.1:0 --data "$work/data" >"$work/serve.log" 2>&1 </dev/null &
	pid=$!
	until grep -q '127\.0\.0\.1:[1-9]' "$work/serve.log" || [ "$tries" -ge 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" -eq 0 ] || { problem "serve ended with $status after SIGTERM, not 0"; cat "$work/serve.log" >&2; }

	# A program that ends itself by a signal, in the place of the binary.
	local binary
	binary=$(find -L "$work/prefix/node_modules/@savoir" -type f -path '*/bin/savoir')
	mv "$binary" "$binary.real"
	printf '#!/bin/sh\nkill -KILL $$\n' >"$binary"
	chmod +x "$binary"
	status=0
	# A shell reports 128 and the number of the signal.
	# shellcheck disable=SC2016
	clean "$work/only-node" /bin/sh -c '"$0"; exit $?' "$1" >/dev/null 2>&1 || status=$?
	[ "$status" -eq 137 ] || problem "the launcher ended with $status after its child was killed, not 137"
	printf '#!/bin/sh\nexit 42\n' >"$binary"
	status=0
	clean "$work/only-node" "$1" || status=$?
	[ "$status" -eq 42 ] || problem "the launcher ended with $status instead of 42"
	mv "$binary.real" "$binary"
}

# The folder that the archive contains, unpacked once.
unpacked() {
	local name
	name=$(basename "$(echo "$out/savoir-$version"-*.tar.gz)" .tar.gz)
	[ -d "$work/tarball/$name" ] || { mkdir -p "$work/tarball" && tar -xzf "$out/$name.tar.gz" -C "$work/tarball"; }
	echo "$work/tarball/$name"
}

# The native module of the wheel, unpacked once.
native() {
	local file=$work/native/savoir_skills/_native.abi3.so
	[ -f "$file" ] || "$python" -m zipfile --extract "$out"/*.whl "$work/native"
	echo "$file"
}

test_tarball() {
	(cd "$out" && sha256sum --check --strict --quiet SHA256SUMS) || problem "SHA256SUMS does not fit the packages"
	[ "$(wc -l <"$out/SHA256SUMS")" -eq "$(find "$out" -type f ! -name SHA256SUMS | wc -l)" ] ||
		problem "SHA256SUMS does not list every package"
	local dir file
	dir=$(unpacked)
	runs /nonexistent "$dir/savoir"
	for file in completions/savoir.bash completions/_savoir completions/savoir.fish man/savoir.1 man/savoir-check.1 \
		LICENSE-MIT LICENSE-APACHE THIRD-PARTY-NOTICES README.md; do
		[ -s "$dir/$file" ] || problem "the archive has no $file"
	done
	bash -n "$dir/completions/savoir.bash" || problem "bash cannot read its completions"
	tar --list --verbose --numeric-owner -zf "$out/$(basename "$dir").tar.gz" |
		awk '$2 != "0/0" { bad = 1 } END { exit bad }' || problem "the archive names the owner of the build"
}

test_deb() {
	command -v dpkg-deb >/dev/null || { skip "dpkg-deb is not installed"; return; }
	local deb=$work/deb file path
	file=$(echo "$out"/savoir_*.deb)
	mkdir -p "$deb"
	dpkg-deb --extract "$file" "$deb"
	runs /nonexistent "$deb/usr/bin/savoir"
	(cd "$deb" && dpkg-deb --info "$file" md5sums | md5sum --check --strict --quiet) || problem "md5sums does not fit the files"
	expect 0 "libc6 (>= " dpkg-deb --field "$file" Depends
	expect 0 "savoir-check" zcat "$deb/usr/share/man/man1/savoir-check.1.gz"
	for path in usr/share/doc/savoir/copyright usr/share/bash-completion/completions/savoir \
		usr/share/zsh/vendor-completions/_savoir usr/share/fish/vendor_completions.d/savoir.fish; do
		[ -s "$deb/$path" ] || problem "the package has no $path"
	done

	# Install it with dpkg into a folder. Root is needed to change into it, so fakeroot is not enough.
	if [ "$(id -u)" -eq 0 ]; then
		local system=$work/system
		mkdir -p "$system/var/lib/dpkg/info" "$system/var/lib/dpkg/updates" "$system/var/lib/dpkg/triggers"
		: >"$system/var/lib/dpkg/status"
		expect 0 "Setting up savoir" dpkg --root="$system" --force-depends --force-not-root --log=/dev/null --install "$file"
		runs /nonexistent "$system/usr/bin/savoir"
		expect 0 "Removing savoir" dpkg --root="$system" --force-not-root --log=/dev/null --remove savoir
		[ ! -e "$system/usr/bin/savoir" ] || problem "dpkg --remove left savoir behind"
	else
		echo "    dpkg --install skipped: it needs root"
	fi
}

test_vsix() {
	[ -n "$npm" ] || { skip "npm is not installed"; return; }
	local vsix=$work/vsix
	mkdir -p "$vsix"
	# Every file that the manifest names is there, and the program may be started.
	expect 0 "savoir $version linux-x64 3 files 0o755" "$python" -c '
import sys, xml.etree.ElementTree as tree, zipfile
archive = zipfile.ZipFile(sys.argv[1])
archive.extractall(sys.argv[2])
manifest = tree.fromstring(archive.read("extension.vsixmanifest"))
of = {"v": "http://schemas.microsoft.com/developer/vsx-schema/2011"}
who = manifest.find("v:Metadata/v:Identity", of)
assets = [asset.get("Path") for asset in manifest.findall("v:Assets/v:Asset", of)]
assert set(assets) < set(archive.namelist()), assets
types = tree.fromstring(archive.read("[Content_Types].xml"))
known = {one.get("Extension") for one in types}
assert all("." + name.rsplit(".", 1)[1] in known for name in archive.namelist() if "." in name.rsplit("/", 1)[-1] and name[0] != "[")
mode = archive.getinfo("extension/bin/savoir").external_attr >> 16 & 0o777
print(who.get("Id"), who.get("Version"), who.get("TargetPlatform"), len(assets), "files", oct(mode))
' "$out"/savoir-vscode-*.vsix "$vsix"
	chmod +x "$vsix/extension/bin/savoir"
	runs /nonexistent "$vsix/extension/bin/savoir"
	for file in LICENSE.txt THIRD-PARTY-NOTICES.txt bin/THIRD-PARTY-NOTICES.txt; do
		[ -s "$vsix/extension/$file" ] || problem "the extension has no $file"
	done
	expect 0 "4 commands" "$node" "$here/test_vsix.js" "$vsix"
	expect 0 "pass 3" "$node" --test "$root/editors/vscode/test/program.test.js"
}

test_installer() {
	local archive site=$work/site port url to="$work/my programs" tools=/usr/bin:/bin program
	archive=$(basename "$(echo "$out/savoir-$version"-*.tar.gz)")
	mkdir -p "$site/latest/download" "$site/download/v$version"
	cp "$out/SHA256SUMS" "$site/latest/download"
	cp "$out/SHA256SUMS" "$out/$archive" "$site/download/v$version"

	grep -qx "REPOSITORY=$(python3 "$here/project.py" repository)" "$here/install.sh" ||
		problem "the repository in install.sh is not the one in Cargo.toml"

	"$python" -u -m http.server --bind 127.0.0.1 --directory "$site" 0 >"$work/http.log" 2>/dev/null &
	server=$!
	until grep -q 'port [0-9]' "$work/http.log"; do sleep 0.1; done
	port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/http.log" | head -n 1)
	url=http://127.0.0.1:$port
	# shellcheck disable=SC2329 # `expect` calls it
	install() { clean "$tools" SAVOIR_INSTALL_URL="$url" sh "$here/install.sh" "$@"; }

	# The latest version, into the home.
	expect 0 "installed savoir $version" install
	also "hint: add it to your path"
	cp "$work/home/.local/bin/savoir" "$work/installed-savoir"
	runs /nonexistent "$work/installed-savoir"
	# A version and a folder, twice: it replaces the program.
	expect 0 "installed savoir $version" install --to "$to" --version "$version"
	expect 0 "installed savoir $version" install --to "$to" --version "v$version"
	runs /nonexistent "$to/savoir"
	[ "$(ls -A "$to")" = savoir ] || problem "install.sh left other files in the folder"

	expect 1 "hint: check your connection and the version" install --to "$work/none" --version 99.0.0
	expect 1 "hint: run: sh install.sh --help" install --wrong
	expect 1 "hint: use a version such as 0.1.0" install --version '../x'
	expect 0 "Usage: sh install.sh" install --help
	: >"$work/file"
	expect 1 "hint: choose a folder that you can write to" install --to "$work/file/bin"
	mkdir -p "$work/few"
	for program in uname mktemp rm; do ln -sf "$(command -v "$program")" "$work/few/$program"; done
	expect 1 "hint: install one of them" clean "$work/few" SAVOIR_INSTALL_URL="$url" /bin/sh "$here/install.sh" --to "$work/none"

	# Without curl.
	if command -v wget >/dev/null; then
		for program in wget grep wc cut sha256sum tar gzip mkdir cp chmod mv cat; do
			ln -sf "$(command -v "$program")" "$work/few/$program"
		done
		expect 0 "installed savoir $version" clean "$work/few" SAVOIR_INSTALL_URL="$url" /bin/sh "$here/install.sh" --to "$to"
	fi

	# A changed archive is refused, and so is a release without one for this machine.
	printf 'x' >>"$site/download/v$version/$archive"
	expect 1 "the checksum of $archive is" install --to "$work/none"
	also "hint: nothing was installed"
	grep -v "$archive" "$out/SHA256SUMS" >"$site/latest/download/SHA256SUMS"
	expect 1 "the release has no archive for" install --to "$work/none"
	[ ! -e "$work/none" ] || problem "install.sh wrote something although it failed"
	kill "$server"
	server=
}

test_action() {
	local temp=$work/runner tools path
	tools=$work/tools
	mkdir -p "$temp" "$tools"
	ln -sf "$(unpacked)/savoir" "$tools/savoir"
	path=$tools:/usr/bin:/bin
	# shellcheck disable=SC2329 # `expect` calls it
	action() {
		: >"$temp/output"
		clean "$path" RUNNER_TEMP="$temp" GITHUB_OUTPUT="$temp/output" "$@" bash "$here/action.sh"
	}
	expect 0 "verdict" action SAVOIR_PATH=examples/article-summary
	expect 0 "check-sarif=$temp/savoir-check.sarif" cat "$temp/output"
	expect 0 "scan-sarif=$temp/savoir-scan.sarif" cat "$temp/output"
	expect 0 "2.1.0" "$python" -c 'import json, sys; print([json.load(open(f))["version"] for f in sys.argv[1:]])' \
		"$temp/savoir-check.sarif" "$temp/savoir-scan.sarif"
	expect 1 "::error" action SAVOIR_PATH=broken SAVOIR_SCAN=off
	expect 0 "verdict" action SAVOIR_PATH=broken SAVOIR_CHECK=off
	cp -R "$root/docs/samples/free-wallpapers" "$work/free-wallpapers"
	expect 1 "the verdict is block" action SAVOIR_PATH=free-wallpapers SAVOIR_CHECK=off
	# The differences of a pull request: the skill asks for more than before.
	local repository=$work/pull-request base
	mkdir -p "$repository/skills"
	cp -R examples/git-helper "$repository/skills/"
	git -C "$repository" init --quiet
	git -C "$repository" add .
	git -C "$repository" -c user.name=a -c user.email=a@example.com commit --quiet --message first
	base=$(git -C "$repository" rev-parse HEAD)
	sed -i 's/^read_only: true$/read_only: true\nnetwork: true/; $a More words for the model to read.' \
		"$repository/skills/git-helper/SKILL.md"
	local folder=$repository
	expect 0 "verdict" action SAVOIR_BASE="$base" SAVOIR_PATH=skills GITHUB_STEP_SUMMARY="$temp/summary"
	folder=$work
	grep --quiet 'git-helper.*tokens (+' "$temp/summary" || problem "the summary does not show the differences"
	expect 1 "hint: set the input path" action SAVOIR_PATH=nowhere
	expect 1 "hint: use on, strict or off" action SAVOIR_CHECK=maybe
}

test_reproducible() {
	local glibc=
	case $(echo "$out"/*.whl) in
	*manylinux_*) glibc=$(basename "$(echo "$out"/*.whl)" | sed 's/.*manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/') ;;
	esac
	# Another folder, another time zone and another umask must not matter.
	(umask 077 && TZ=Asia/Tokyo LC_ALL=C BINARY="$(unpacked)/savoir" NATIVE="$(native)" GLIBC=$glibc \
		"$here/dist.sh" "$work/again" >/dev/null)
	diff -r "$out" "$work/again" || problem "a second build gives other bytes"
}

skip() { skipped="${skipped:-}    skipped: $1"$'\n'; }

[ $# -gt 0 ] || set -- readers wheel npm tarball deb vsix installer action reproducible
for test in "$@"; do
	before=$failures
	skipped=
	start=$SECONDS
	"test_$test"
	if [ "$failures" -gt "$before" ]; then
		echo "FAILED  $test"
	elif [ -n "$skipped" ]; then
		printf 'skipped %s\n%s' "$test" "$skipped"
	else
		echo "ok      $test ($((SECONDS - start)) s)"
	fi
done
[ "$failures" -eq 0 ] || { echo "$failures checks failed" >&2; exit 1; }
