#!/usr/bin/env bash
# Scanners that others wrote, which vetting asks when they are installed: Bandit and detect-secrets.
# Nothing runs: scanners.sh FOLDER
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$1"
touch "$work/pids"
place="$("$here/../venv.sh" "$here/scanners.txt")"
echo "SAVOIR_TEST_SCANNERS=$place/bin"
