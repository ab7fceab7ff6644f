# The two commands of the README stand on this file: `make test` is all that a fresh machine needs.

SHELL := /bin/bash
.DEFAULT_GOAL := test

# Another cargo, or another place for what it builds: make CARGO=… CARGO_TARGET_DIR=…
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: run test setup lint unit docs smoke-web test-web generated bench bench-registry-scale soak fuzz clean dist test-dist test-python

# Builds quickly, then starts the server; make run ARGS="check examples" runs another command.
ARGS ?= serve

run:
	@test -x $(TARGET)/quick/savoir || echo "Building savoir: about 8 minutes on two cores, once."
	$(CARGO) run --profile quick --locked -- $(ARGS)

test: setup lint unit docs smoke-web
	@echo "all checks passed"

setup:
	@scripts/setup.sh

lint:
	$(CARGO) fmt --all --check
	rustfmt --check fuzz/fuzz_targets/*.rs
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --package savoir --no-default-features --locked -- -D warnings
	$(CARGO) clippy --package savoir-skill --no-default-features --locked -- -D warnings
	scripts/count_dependencies.sh savoir-skill 45 --no-default-features
	$(CARGO) rustc --package savoir-sandbox --lib --profile check --locked -- --cfg savoir_other_system
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --locked

# Many tests wait for servers and processes, so two of them share a processor.
# Beside the real servers that tests talk to; what cannot be started is named. Tests that were skipped
# are listed at the end with the reason. Plain `cargo test` skips all that need a server.
JUNIT := $(TARGET)/nextest/$(if $(CI),ci,default)/junit.xml

unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		rm -f $(JUNIT); \
		(set -x; scripts/services.sh $(CARGO) nextest run --workspace --locked \
			--test-threads $$((2 * $$(getconf _NPROCESSORS_ONLN))) $(if $(CI),--profile ci)); \
		status=$$?; scripts/skipped.py $(JUNIT); exit $$status; \
	else \
		set -x; scripts/services.sh $(CARGO) test --workspace --locked --lib --bins --tests; \
	fi
	$(CARGO) test --workspace --locked --doc

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	scripts/libraries.py $(TARGET)/doc

# The web app in a real browser: its main pages in at most four minutes, or everything. Both check
# that ui/dist is what the sources build. The smoke test uses the binary that `unit` has built.
smoke-web:
	@test -x $(TARGET)/debug/savoir || $(CARGO) build --quiet --locked --package savoir
	@scripts/web.sh smoke

# On CI, `unit` has just built the program.
test-web:
	@test -n "$(CI)" -a -x $(TARGET)/debug/savoir || $(CARGO) build --quiet --locked --package savoir
	@scripts/web.sh all

# The Python package, in an empty environment of each Python that is here.
test-python:
	$(CARGO) build --quiet --locked --package savoir --package savoir-python
	scripts/test_python.sh $(TARGET)

# Files that are generated from the code; tests hold them equal.
generated:
	$(CARGO) build --quiet --locked --package savoir
	rm -rf docs/reference/rules
	$(TARGET)/debug/savoir reference docs/reference
	$(TARGET)/debug/savoir schema --all schemas

# Speed and memory beside the peers, as ratios of one run. Needs python3.
bench:
	$(CARGO) build --profile dist --locked --workspace
	python3 benches/compare.py
	python3 benches/hostile.py --binary $(TARGET)/dist/savoir
	$(TARGET)/dist/bench-sandbox 200
	$(TARGET)/dist/bench-environment 20
	$(TARGET)/dist/bench-python-calls 2000
	$(TARGET)/dist/bench-server 1000 1000
	$(TARGET)/dist/bench-resolve 1000 50
	$(TARGET)/dist/bench-shelf 1000,10000 5
	$(TARGET)/dist/bench-sources 61000 5
	$(TARGET)/dist/bench-registry 10 3
	python3 benches/agents.py
	python3 benches/editor.py

# A registry with very many skills on a PostgreSQL of its own: it takes about half an hour and some
# gigabytes.
ROWS ?= 100000,1000000

bench-registry-scale:
	$(CARGO) build --profile dist --locked --package savoir --package savoir-benches
	scripts/services.sh sh -c \
		'SAVOIR_BENCH_POSTGRES="$$SAVOIR_TEST_POSTGRES" $(TARGET)/dist/bench-registry-scale $(ROWS)'

# Long runs that do not belong into every test: a hundred thousand skills, fuzzing, agents that are
# large, and a database that is killed again and again.
soak: fuzz
	SAVOIR_TEST_SOAK=1 scripts/services.sh $(CARGO) test --locked --package savoir --test it real_agents
	SAVOIR_TEST_SOAK=1 scripts/services.sh $(CARGO) test --locked --package savoir --test it faults
	SAVOIR_TEST_SOAK=1 $(CARGO) test --locked --package savoir-eval --test it harness -- --nocapture
	$(CARGO) build --profile dist --locked --workspace
	python3 benches/compare.py --skills 1000,10000,100000 --no-peers

# Packages for this machine, in target/dist-packages. BINARY=path packages an existing binary,
# GLIBC=2.28 builds with zig for older systems; packaging/README.md explains both.
dist:
	BINARY="$(BINARY)" GLIBC="$(GLIBC)" CARGO="$(CARGO)" packaging/dist.sh $(TARGET)/dist-packages

# Installs each package that `make dist` wrote into an empty environment, and runs it there.
test-dist:
	packaging/test.sh $(TARGET)/dist-packages

SECONDS_PER_TARGET ?= 60

fuzz:
	@scripts/fuzz.sh $(SECONDS_PER_TARGET)

clean:
	$(CARGO) clean
