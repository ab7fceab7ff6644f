# The two commands of the README stand on this file: `make test` is all that a fresh machine needs.

SHELL := /bin/bash
.DEFAULT_GOAL := test

# The suite holds real skills against itself where they lie beside the repository.
CARGO ?= cargo

.PHONY: test setup lint unit docs generated bench soak fuzz clean

test: setup lint unit docs
	@echo "all checks passed"

setup:
	@scripts/setup.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -x; $(CARGO) nextest run --workspace --locked; \
	else \
		set -x; $(CARGO) test --workspace --locked --lib --bins --tests; \
	fi
	$(CARGO) test --workspace --locked --doc

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

# Files that are generated from the code; tests hold them equal.
generated:
	$(CARGO) build --quiet --package savoir
	target/debug/savoir rules --markdown > docs/rules.md
	@for dialect in agentskills claude-code codex openclaw agent-flow gibberish gaia skillrt personal-agent; do \
		target/debug/savoir schema $$dialect > schemas/$$dialect.json; \
	done

# Speed and memory beside the peers, as ratios of one run. Needs python3.
bench:
	$(CARGO) build --release --locked --workspace
	python3 benches/compare.py

# Long runs that do not belong into every test: a hundred thousand skills, and fuzzing.
soak: fuzz
	$(CARGO) build --release --locked --workspace
	python3 benches/compare.py --skills 1000,10000,100000 --no-peers

SECONDS_PER_TARGET ?= 60

fuzz:
	@scripts/fuzz.sh $(SECONDS_PER_TARGET)

clean:
	$(CARGO) clean
