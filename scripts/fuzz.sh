#!/usr/bin/env bash
# Fuzzes each target for some seconds, and adds the time to fuzz/ledger.tsv. Uses cargo-fuzz; the
# stable toolchain serves with RUSTC_BOOTSTRAP, without sanitizers.
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

# The inputs to begin with: the seeds, and the skills of examples/.
inputs() {
	local target=$1 folder name
	mkdir -p "fuzz/corpus/$target"
	cp "fuzz/seeds/$target"/* "fuzz/corpus/$target/"
	case "$target" in
	parse | fix | convert)
		for folder in examples/*/; do
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

# One line for each run, so that the time adds up over the months.
note() {
	printf '%s\t%s\t%s\t%s\n' \
		"$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo -)" "$1" "$2" >>fuzz/ledger.tsv
}

for target in "${targets[@]}"; do
	start=$SECONDS
	if [ "$target" = bodies ]; then
		# Bodies of requests go to a real server; no crash of it, and no error 500.
		SAVOIR_TEST_BODIES_SECONDS="$seconds" cargo test --locked --package savoir-server --test it \
			bodies::every_route_answers_any_body
	else
		inputs "$target"
		# Compiling does not count.
		RUSTC_BOOTSTRAP=1 cargo fuzz build --sanitizer none "$target"
		start=$SECONDS
		RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "$target" -- \
			-max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=512
	fi
	note "$target" "$((SECONDS - start))"
done
awk -F'\t' 'NR > 1 { sum[$3] += $4 } END { for (one in sum) printf "%-12s %6.2f CPU hours\n", one, sum[one] / 3600 }' \
	fuzz/ledger.tsv | sort
