# `make test` installs what is missing and runs all checks; `make run` builds and starts the server.

SHELL := /bin/bash
.DEFAULT_GOAL := test

# To use another cargo or target folder: make CARGO=… CARGO_TARGET_DIR=…
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

# On CI nothing is compiled yet, so clippy compiles the tests, too: to check first and compile afterwards
# would read every crate twice.
ifdef CI
export RUSTC_WORKSPACE_WRAPPER := clippy-driver
export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
endif

.PHONY: run test setup lint unit test-slow docs smoke-web test-web test-web-services generated bench bench-registry-scale soak fuzz clean dist test-dist test-python

# Builds with the profile `quick` and starts the server; make run ARGS="check examples" runs another
# command.
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
ifndef CI
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
endif
	$(CARGO) clippy --package savoir --no-default-features --locked -- -D warnings
	$(CARGO) clippy --package savoir-skill --no-default-features --locked -- -D warnings
	scripts/count_dependencies.sh savoir-skill 45 --no-default-features
	$(CARGO) rustc --package savoir-sandbox --lib --profile check --locked -- --cfg savoir_other_system
	$(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --locked

# Many tests wait for servers and processes, so this runs two tests per processor.
# Starts the servers that tests need and prints which ones cannot be started. At the end, lists skipped
# tests with the reason. Plain `cargo test` skips all tests that need a server.
JUNIT := $(TARGET)/nextest/$(if $(CI),ci,default)/junit.xml
NEXTEST := $(CARGO) nextest run --workspace --locked --no-fail-fast $(if $(CI),--profile ci) \
	--test-threads $$((2 * $$(getconf _NPROCESSORS_ONLN)))

unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		rm -f $(JUNIT); \
		export MEANWHILE="$(CARGO) test --no-run --quiet --workspace --all-targets --locked"; \
		(set -x; scripts/services.sh $(NEXTEST)); \
		status=$$?; scripts/skipped.py $(JUNIT); exit $$status; \
	else \
		set -x; scripts/services.sh $(CARGO) test --workspace --locked --lib --bins --tests; \
	fi
	$(CARGO) test --workspace --locked --doc

# The tests that `make test` leaves out (.config/nextest.toml): real agents and models, package managers,
# the whole corpus, and servers that fail.
test-slow:
	@rm -f $(JUNIT); (set -x; scripts/services.sh $(NEXTEST) --ignore-default-filter -E 'not default()'); \
		status=$$?; scripts/skipped.py $(JUNIT); exit $$status

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	scripts/libraries.py $(TARGET)/doc

# Test the web app in a real browser: its main pages in at most four minutes, or everything. Both check
# that ui/dist is built from the current sources. The smoke test uses the binary that `unit` has built.
smoke-web:
	@test -x $(TARGET)/debug/savoir || $(CARGO) build --quiet --locked --package savoir
	@scripts/web.sh smoke

# On CI, `unit` has just built the program.
test-web:
	@test -n "$(CI)" -a -x $(TARGET)/debug/savoir || $(CARGO) build --quiet --locked --package savoir
	@scripts/web.sh all

# The flows of the web app that store something, on PostgreSQL with S3, and a real small model.
test-web-services:
	@test -x $(TARGET)/debug/savoir || $(CARGO) build --quiet --locked --package savoir
	@SERVICES="postgres s3 model" scripts/services.sh scripts/web.sh services

# Tests the Python package in an empty environment of each installed Python.
test-python:
	$(CARGO) build --quiet --locked --package savoir --package savoir-python
	scripts/test_python.sh $(TARGET)

# Writes the files that are generated from the code. Tests check that they are up to date.
generated:
	$(CARGO) build --quiet --locked --package savoir
	rm -rf docs/reference/rules
	$(TARGET)/debug/savoir reference docs/reference
	$(TARGET)/debug/savoir schema --all schemas

# Compares speed and memory with other programs. Needs python3.
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

# Measures a registry with very many skills on a new PostgreSQL server. Takes about half an hour and
# some gigabytes.
ROWS ?= 100000,1000000

bench-registry-scale:
	$(CARGO) build --profile dist --locked --package savoir --package savoir-benches
	scripts/services.sh sh -c \
		'SAVOIR_BENCH_POSTGRES="$$SAVOIR_TEST_POSTGRES" $(TARGET)/dist/bench-registry-scale $(ROWS)'

# Tests that take too long for `make test`: a hundred thousand skills, fuzzing, large agents, and a
# database that is killed repeatedly.
soak: fuzz
	SAVOIR_TEST_SOAK=1 scripts/services.sh $(CARGO) test --locked --package savoir --test it real_agents
	SAVOIR_TEST_SOAK=1 scripts/services.sh $(CARGO) test --locked --package savoir --test it faults -- --nocapture
	SAVOIR_TEST_SOAK=1 scripts/services.sh $(CARGO) test --locked --package savoir --test it openapi
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
