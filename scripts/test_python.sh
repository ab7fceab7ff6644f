#!/usr/bin/env bash
# Tests the Python package: test_python.sh [TARGET_DIR]
#
# It builds a wheel from debug builds. For each installed Python from 3.10 to 3.13, it installs the wheel
# into an empty environment and runs python/tests there. The tests of the adapters run in an environment
# with the frameworks, which pip downloads once; without a network they are skipped with a message.
#
#   SAVOIR_TEST_PYTHONS   interpreters to use [default: python3.10 … python3.13, else python3]
#   SAVOIR_TEST_CACHE     where the frameworks are installed [default: ~/.cache/savoir-tests]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
target=$(cd "${1:-$root/target}" && pwd)
cache=${SAVOIR_TEST_CACHE:-$HOME/.cache/savoir-tests}
work=$(mktemp -d "${TMPDIR:-/tmp}/savoir-python.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

# With debug information, the wheel would have hundreds of megabytes.
mkdir "$work/bin"
strip -o "$work/bin/savoir" "$target/debug/savoir"
strip -o "$work/bin/libsavoir_native.so" "$target/debug/libsavoir_native.so"
wheel=$(python3 "$root/packaging/wheel.py" "$work/bin/savoir" "$work" --glibc auto --compress 0)

# Prints the path of the real interpreter, because a pyenv shim may start another version or fail.
interpreter() {
	"$1" -c 'import os, sys, ensurepip; print(os.path.realpath(sys.executable))' 2>/dev/null
}

found=()
for name in ${SAVOIR_TEST_PYTHONS:-python3.10 python3.11 python3.12 python3.13}; do
	path=$name
	command -v "$name" >/dev/null 2>&1 && path=$(interpreter "$name" || :) || path=
	# Versions that pyenv has installed, but that are not active.
	[ -n "$path" ] || path=$(compgen -G "${PYENV_ROOT:-$HOME/.pyenv}/versions/${name#python}.*/bin/python" | tail -n 1 || :)
	if [ -n "$path" ]; then found+=("$path"); else echo "=== SKIPPED: $name is not installed ===" >&2; fi
done
[ "${#found[@]}" -gt 0 ] || found=("$(interpreter python3)")

# run_tests PYTHON [PATTERN]
run_tests() {
	(cd "$root" && env -u PYTHONPATH HOME="$work/home" SAVOIR_TEST_ROOT="$root" "$1" -m unittest discover \
		--start-directory python/tests --top-level-directory python/tests --pattern "${2:-test_*.py}")
}
mkdir "$work/home"

for python in "${found[@]}"; do
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	echo "--- Python $version"
	"$python" -m venv "$work/$version"
	"$work/$version/bin/python" -m pip install --quiet --no-index "$wheel"
	run_tests "$work/$version/bin/python"
done

# frameworks NAME: runs the tests that need python/tests/NAME.txt, with the newest interpreter.
frameworks() {
	local place=$cache/python-$1-$version
	if ! cmp --silent "$place/installed.txt" "$root/python/tests/$1.txt"; then
		"$python" -m venv --clear "$place"
		if "$place/bin/python" -m pip install --quiet --requirement "$root/python/tests/$1.txt"; then
			cp "$root/python/tests/$1.txt" "$place/installed.txt"
		else
			echo "=== SKIPPED: python/tests/$1.txt cannot be installed; its tests did not run ===" >&2
			return 0
		fi
	fi
	echo "--- $1"
	"$place/bin/python" -m pip install --quiet --no-index --force-reinstall --no-deps "$wheel"
	run_tests "$place/bin/python" "$1_*.py"
}
frameworks framework
frameworks gaia
