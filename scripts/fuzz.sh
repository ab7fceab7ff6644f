#!/usr/bin/env bash
# Fuzzes each target for some seconds. Uses cargo-fuzz; the stable toolchain serves with
# RUSTC_BOOTSTRAP, without sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
command -v cargo-fuzz >/dev/null 2>&1 || cargo install cargo-fuzz --version 0.13.2 --locked
run() {
	RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "$1" -- \
		-max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=512
}
mkdir -p fuzz/corpus
for target in parse fix convert; do
	mkdir -p "fuzz/corpus/$target"
	for skill in examples/*/SKILL.md; do
		cp "$skill" "fuzz/corpus/$target/$(basename "$(dirname "$skill")").md"
	done
	run "$target"
done
mkdir -p fuzz/corpus/archive
for folder in examples/*/; do
	name="$(basename "$folder")"
	tar -C examples -czf "fuzz/corpus/archive/$name.tgz" "$name"
	tar -C examples -cf "fuzz/corpus/archive/$name.tar" "$name"
	! command -v zip >/dev/null 2>&1 ||
		(cd examples && zip -qr - "$name") >"fuzz/corpus/archive/$name.zip"
done
run archive
for target in scan allow_list template; do
	mkdir -p "fuzz/corpus/$target"
	cp "fuzz/seeds/$target"/* "fuzz/corpus/$target/"
	run "$target"
done
# Bodies of requests go to a real server; no crash of it, and no error 500.
SAVOIR_TEST_BODIES_SECONDS="$seconds" cargo test --locked --package savoir-server --test it \
	bodies::every_route_answers_any_body
