#!/usr/bin/env bash
# Installs third-party agents from npm. Starts no process: agents.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"

# offer VARIABLE LOCK PROGRAM: prints VARIABLE=path, or that the program is not installed.
offer() {
	local place program
	if place="$("$here/../npm.sh" "$here/npm/$2")" &&
		program="$(compgen -G "$place/node_modules/$3" | head -n 1)"; then
		echo "$1=$program"
	else
		echo "=== NOT INSTALLED: $2; its tests are skipped ===" >&2
	fi
}

offer SAVOIR_TEST_CLAUDE_CODE claude-code '@anthropic-ai/claude-code-linux-*/claude'
offer SAVOIR_TEST_OPENCODE opencode 'opencode-linux-*/bin/opencode'
offer SAVOIR_TEST_GEMINI gemini '.bin/gemini'
offer SAVOIR_TEST_QWEN qwen '.bin/qwen'
# The largest agent is installed only for `make soak`; a scripted model cannot make it call our tools.
if [ -n "${SAVOIR_TEST_SOAK:-}" ]; then
	offer SAVOIR_TEST_CODEX codex 'codex-linux-*/vendor/*/bin/codex'
fi
