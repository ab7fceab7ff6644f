#!/usr/bin/env bash
# Installs Bandit and detect-secrets, which vetting uses if they are installed. Starts no process:
# scanners.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
place="$("$here/../venv.sh" "$here/scanners.txt")"
echo "SAVOIR_TEST_SCANNERS=$place/bin"
