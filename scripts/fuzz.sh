#!/usr/bin/env bash
# Fuzzes each target for SECONDS and adds the processor time to fuzz/ledger.tsv. Uses cargo-fuzz with the
# stable toolchain (through RUSTC_BOOTSTRAP) and without sanitizers.
#
#     scripts/fuzz.sh SECONDS [TARGET…]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(parse fix convert archive scan allow_list template lsp bodies)
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --version 0.13.2 --locked
mkdir -p fuzz/corpus

# The initial corpus: the seeds, and the skills in examples/.
inputs() {
	local target=$1 folder name
	mkdir -p "fuzz/corpus/$target"
	cp "fuzz/seeds/$target"/* "fuzz/corpus/$target/"
	case "$target" in
	parse | fix | convert)
		for folder in examples/*/; do
			[ -f "$folder/SKILL.md" ] || continue
			name="$(basename "$folder")"
			cp "$folder/SKILL.md" "fuzz/corpus/$target/$name.md"
		done
		;;
	archive)
		for folder in examples/*/; do
			name="$(basename "$folder")"
			tar -C examples -czf "fuzz/corpus/archive/$name.tgz" "$name"
			tar -C examples -cf "fuzz/corpus/archive/$name.tar" "$name"
			! command -v zip >/dev/null 2>&1 ||
				(cd examples && zip -qr - "$name") >"fuzz/corpus/archive/$name.zip"
		done
		;;
	esac
}

# The ledger has one line for each run, so that the total time can be computed.
note() {
	printf '%s\t%s\t%s\t%s\n' \
		"$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo -)" "$1" "$2" >>fuzz/ledger.tsv
}

# Runs a command, and sets `cpu` to the seconds of processor time that it used.
measure() {
	local times status=0
	exec 3>&1 4>&2
	times="$({ TIMEFORMAT='%0U %0S'; time "$@" >&3 2>&4; } 2>&1)" || status=$?
	exec 3>&- 4>&-
	cpu=$((${times/ / + }))
	return $status
}

for target in "${targets[@]}"; do
	if [ "$target" = bodies ]; then
		# Sends request bodies to a real server, which must not crash or respond with status 500.
		cargo test --quiet --locked --package savoir-server --test it --no-run
		SAVOIR_TEST_BODIES_SECONDS="$seconds" measure cargo test --locked --package savoir-server \
			--test it bodies::every_route_answers_any_body
	else
		inputs "$target"
		# Build first, so that the time does not include compiling.
		RUSTC_BOOTSTRAP=1 cargo fuzz build --sanitizer none "$target"
		RUSTC_BOOTSTRAP=1 measure cargo fuzz run --sanitizer none "$target" -- \
			-max_total_time="$seconds" -max_len=65536 -timeout=30 -rss_limit_mb=512
	fi
	note "$target" "$cpu"
done
awk -F'\t' 'NR > 1 { sum[$3] += $4 } END { for (one in sum) printf "%-12s %6.2f CPU hours\n", one, sum[one] / 3600 }' \
	fuzz/ledger.tsv | sort
