#!/usr/bin/env bash
# Fuzzes each target for some seconds. Uses cargo-fuzz; the stable toolchain serves with
# RUSTC_BOOTSTRAP, without sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --version 0.13.2 --locked
mkdir -p fuzz/corpus
for target in parse fix convert; do
	mkdir -p "fuzz/corpus/$target"
	for skill in examples/*/SKILL.md; do
		cp "$skill" "fuzz/corpus/$target/$(basename "$(dirname "$skill")").md"
	done
	RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "$target" -- \
		-max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=512
done
