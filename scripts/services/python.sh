#!/usr/bin/env bash
# Installs third-party Python clients: schemathesis, which checks a server against its OpenAPI document,
# OpenAI's client, and a client for server-sent events. Starts no process: python.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
place="$("$here/../venv.sh" "$here/python.txt")"
echo "SAVOIR_TEST_PYTHON=$place/bin/python"
