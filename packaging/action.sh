#!/usr/bin/env bash
# The steps of the GitHub Action (action.yml): check and scan skills, and write SARIF files.
#
# Input variables: SAVOIR_PATH (folder), SAVOIR_CHECK (on, strict, off), SAVOIR_SCAN (block, review,
# off), SAVOIR_BASE (commit before the pull request; empty for none), SAVOIR_COMMENT_ON (number of the
# pull request to comment on; empty for none), RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY. Outputs: check-sarif and scan-sarif, the paths of the files.
# The exit code is 1 if there are errors.
set -euo pipefail

path=${SAVOIR_PATH:-.}
failed=0

# Escape a text for a workflow command.
escape() {
	printf '%s' "$1" | tr '\n\r' '  ' | sed 's/%/%25/g'
}

fail() {
	echo "::error title=savoir::$(escape "$1; hint: $2")"
	exit 1
}

case ${SAVOIR_CHECK:=on} in
on | strict | off) ;;
*) fail "the input check is \"$SAVOIR_CHECK\"" "use on, strict or off" ;;
esac
case ${SAVOIR_SCAN:=block} in
block | review | off) ;;
*) fail "the input scan is \"$SAVOIR_SCAN\"" "use block, review or off" ;;
esac
[ -e "$path" ] || fail "the path $path does not exist" "set the input path to a folder with skills"

if [ "$SAVOIR_CHECK" != off ]; then
	strict=
	[ "$SAVOIR_CHECK" = on ] || strict=--strict
	# Annotations for the pull request, and the exit code.
	savoir check ${strict:+"$strict"} --format github -- "$path" || failed=1
	sarif=$RUNNER_TEMP/savoir-check.sarif
	savoir check ${strict:+"$strict"} --format sarif -- "$path" >"$sarif" || true
	[ ! -s "$sarif" ] || echo "check-sarif=$sarif" >>"$GITHUB_OUTPUT"
fi

if [ "$SAVOIR_SCAN" != off ]; then
	verdict=0
	# Findings quote the skill, which must not be able to give commands to the runner.
	token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	echo "::stop-commands::$token"
	savoir scan -- "$path" || verdict=$?
	echo "::$token::"
	sarif=$RUNNER_TEMP/savoir-scan.sarif
	savoir scan --format sarif -- "$path" >"$sarif" || true
	[ ! -s "$sarif" ] || echo "scan-sarif=$sarif" >>"$GITHUB_OUTPUT"
	case $verdict in
	0) ;;
	1)
		if [ "$SAVOIR_SCAN" = review ]; then
			failed=1
		else
			echo "::warning title=savoir scan::the verdict is review; read the findings"
		fi
		;;
	3)
		echo "::error title=savoir scan::the verdict is block"
		failed=1
		;;
	*)
		echo "::error title=savoir scan::$(escape "$path") was not scanned"
		failed=1
		;;
	esac
fi

# How permissions, tools and tokens differ from the commit before the pull request: in the summary of
# the job, and as a comment. A problem here is a warning, since it says nothing about the skills.
differences() {
	local old=$RUNNER_TEMP/savoir-base report=$RUNNER_TEMP/savoir-differences.md
	# A checkout usually has only the newest commit.
	git cat-file -e "$SAVOIR_BASE^{commit}" 2>/dev/null ||
		git fetch --quiet --depth=1 origin "$SAVOIR_BASE" || return 1
	mkdir -p "$old"
	git archive "$SAVOIR_BASE" | tar -x -C "$old" || return 1
	mkdir -p "$old/$path"
	{
		echo "### Skills"
		echo
		savoir diff --format markdown -- "$old/$path" "$path"
	} >"$report" || return 1
	cat "$report" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
	[ -z "${SAVOIR_COMMENT_ON:-}" ] ||
		gh pr comment "$SAVOIR_COMMENT_ON" --edit-last --create-if-none --body-file "$report"
}

if [ -n "${SAVOIR_BASE:-}" ]; then
	differences || echo "::warning title=savoir::the differences of the skills cannot be shown; hint: actions/checkout must run first, and a comment needs the permission pull-requests: write"
fi

exit "$failed"
