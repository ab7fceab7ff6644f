#!/bin/bash
# Notes a deployment in the repository that it is started in. Only builtins of bash are used, so
# nothing but bash has to be allowed.
set -euo pipefail

stage="${1:?usage: deploy.sh STAGE [MESSAGE]}"
message="${2:-no message}"

case "$stage" in
	preview | production) ;;
	*)
		echo "deploy.sh: there is no stage \"$stage\"" >&2
		exit 2
		;;
esac

# One line per deployment, whatever the message holds.
message="${message//[$'\n\r\t']/ }"
printf -v now '%(%Y-%m-%dT%H:%M:%S)T' -1
printf '%s\t%s\t%s\n' "$now" "$stage" "$message" >>deployments.log
printf '{"stage": "%s", "log": "deployments.log"}\n' "$stage"
