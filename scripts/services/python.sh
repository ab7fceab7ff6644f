#!/usr/bin/env bash
# Python with clients that others wrote: schemathesis, which holds a server against its OpenAPI
# document, the client of OpenAI, and one for server-sent events. Nothing runs: python.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
place="$("$here/../venv.sh" "$here/python.txt")"
echo "SAVOIR_TEST_PYTHON=$place/bin/python"
