# Everything happens in .venv; `make` lists the targets. Works with GNU make 3.81.

VENV := .venv
# Environments of the programs that xmtree is compared with; PECOS needs an older numpy.
PEERS := .venv-peers
PECOS := .venv-pecos
BIN := $(VENV)/bin
PHASE := @tools/phase
# Marks that the compiled module, which is in the source tree, is built for .venv. The package is
# installed editable, so only a change of Rust code needs a build.
MODULE := $(VENV)/.module
RUST := $(shell find rust -name '*.rs') Cargo.toml Cargo.lock
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test sources fmt clippy cargo-test ruff mypy stubtest pytest docs bench measure check wheel release-check clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name what; do \
		printf '  make %-14s %s\n' "$$name" "$$what"; done

demo: install ## Build, install, and compare every learner on the data inside the package
	@$(BIN)/xmtree demo

# Phases of one thread run side by side: the build and all that does not need it, then stubs and
# pages.
test: ## Check and test everything
	@$(MAKE) --no-print-directory fmt $(VENV)/.build
	@$(MAKE) --no-print-directory -j2 install sources
	@$(MAKE) --no-print-directory -j2 stubtest docs
	@$(MAKE) --no-print-directory pytest

# One after the other, next to the build, which installs the package at its end.
sources:
	@$(MAKE) --no-print-directory clippy
	@$(MAKE) --no-print-directory $(VENV)/.test $(VENV)/.docs
	@$(MAKE) --no-print-directory ruff
	@$(MAKE) --no-print-directory mypy
	@$(MAKE) --no-print-directory cargo-test

install: $(MODULE) ## Build the package and install it into .venv

fmt:
	@tools/check-rust fmt clippy
	$(PHASE) "cargo fmt" cargo fmt --check

clippy: $(VENV)/.python
	@tools/check-rust fmt clippy
	$(PHASE) "clippy" cargo clippy --quiet --locked --all-targets --bench instructions --bench atomics \
		--features python -- -D warnings
	$(PHASE) "clippy, no python" cargo clippy --quiet --locked --lib -- -D warnings

cargo-test: ## Test the Rust core, without Python
	@tools/check-rust
	$(PHASE) "cargo test" cargo test --quiet --locked --lib

ruff: $(VENV)/.test
	$(PHASE) "ruff" $(BIN)/ruff check
	$(PHASE) "ruff format" $(BIN)/ruff format --check
	$(PHASE) "language" $(BIN)/python tools/language.py

mypy: $(VENV)/.test
	$(PHASE) "mypy" $(BIN)/python -m mypy

stubtest: $(VENV)/.test install
	$(PHASE) "stubtest" $(BIN)/python -m mypy.stubtest xmtree._core \
		--mypy-config-file pyproject.toml --allowlist tools/stubtest-allow.txt

# One process per core. All tests of a file run in the same process. Files run in order: sorted by
# the number of tests, the slow files with few tests would be left to the end.
pytest: $(VENV)/.test install ## Test the Python package
	$(PHASE) "pytest" $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder

docs: install $(VENV)/.docs ## Build the documentation into docs/_build/html, warnings are errors
	$(PHASE) "docs" $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

# SELECT='-k predict' times a part of the package.
bench: install $(VENV)/.bench ## Time the core (Criterion), and the learners against one-against-all
	@tools/check-rust
	$(PHASE) "tests of the benchmarks" $(BIN)/python -m pytest -o norecursedirs=".*" tests/laboratory
	$(PHASE) "cargo bench" cargo bench --locked
	$(PHASE) "pytest-benchmark" $(BIN)/python -m pytest benches/bench_oaa.py --benchmark-only $(SELECT)

# SELECT='peers labels --only naics --seeds 1' measures a part, '--list' lists the cases, '--help'
# explains all options. Other programs are installed if a selected subject needs them.
OTHERS = $(if $(SELECT),$(filter peers labels,$(SELECT)),all)
measure: install $(VENV)/.bench $(if $(OTHERS),$(PEERS)/.done $(PECOS)/.done) ## Measure the figures of the documentation (hours); SELECT=peers for a part
	$(PHASE) "measure" env PYTHONPATH=benches $(BIN)/python -m harness $(SELECT) \
		--pythons $(PEERS)/bin/python $(PECOS)/bin/python

# SELECT is the name of a check and its arguments; tools/check describes each.
check: $(VENV)/.python $(if $(filter fuzz address long-runs,$(SELECT)),install $(VENV)/.test) ## Run a check: SELECT=counts, fuzz, a sanitizer, long runs; without SELECT, list them
	@tools/check-rust
	$(PHASE) "check $(SELECT)" env SECONDS_EACH=$(or $(filter-out 0,$(SECONDS)),60) tools/check $(SELECT)

wheel: install ## Build a wheel into dist/
	@tools/check-rust
	$(PHASE) "wheel" $(BIN)/maturin build --release --locked --quiet --out dist

release-check: install $(VENV)/.release ## Test the wheel with the oldest and newest dependencies, and build offline
	@tools/check-rust
	$(PHASE) "release-check" $(BIN)/python tools/release_check.py $(SELECT)

clean: ## Remove everything that was built, including .venv
	rm -rf $(VENV) $(PEERS) $(PECOS) target dist docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -f python/xmtree/_core.*.so
	find python tests benches tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@tools/check-rust
	@python=$$(tools/find-python) && echo "== .venv with $$python" && "$$python" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.build: $(VENV)/.python pyproject.toml
	@$(BIN)/python tools/requirements.py build >$(VENV)/build.txt
	$(PHASE) "install dependencies" $(PIP) -r $(VENV)/build.txt
	@touch $@

$(VENV)/.test: $(VENV)/.build
	@$(BIN)/python tools/requirements.py test >$(VENV)/test.txt
	$(PHASE) "install test tools" $(PIP) -r $(VENV)/test.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.build
	@$(BIN)/python tools/requirements.py docs >$(VENV)/docs.txt
	$(PHASE) "install documentation tools" $(PIP) -r $(VENV)/docs.txt
	@touch $@

$(VENV)/.release: $(VENV)/.build
	@$(BIN)/python tools/requirements.py release >$(VENV)/release.txt
	$(PHASE) "install release tools" $(PIP) -r $(VENV)/release.txt
	@touch $@

# Some programs have no wheel for some machines; the others are still measured.
$(VENV)/.bench: $(VENV)/.build
	@$(BIN)/python tools/requirements.py bench >$(VENV)/bench.txt
	@grep -v -e vowpalwabbit -e omikuji -e lightgbm $(VENV)/bench.txt >$(VENV)/bench-rest.txt
	$(PHASE) "install bench tools" $(PIP) -r $(VENV)/bench-rest.txt
	@for program in vowpalwabbit omikuji lightgbm; do \
		grep $$program $(VENV)/bench.txt >$(VENV)/bench-one.txt; \
		$(PIP) --only-binary $$program -r $(VENV)/bench-one.txt || \
			echo "== skipping comparisons with $$program: no wheel for this Python and machine"; \
	done
	@touch $@

# Programs without a wheel for this machine are left out of the comparison.
$(PEERS)/.done: tools/peers.txt tools/install-peers
$(PECOS)/.done: tools/peers-pecos.txt tools/install-peers
%/.done:
	@python=$$(tools/find-python) && echo "== $* with $$python" && "$$python" -m venv --clear $*
	$(PHASE) "install peers" tools/install-peers $* $(filter %.txt,$^)
	@touch $@

# A build only replaces the module if nothing but Rust code has changed. Otherwise it installs
# the package again, because entry points and metadata are in the environment.
$(MODULE): $(VENV)/.build pyproject.toml README.md $(RUST)
	@tools/check-rust
	$(PHASE) "build" env PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet \
		$(if $(filter-out %.rs,$?),,--skip-install)
	@touch $@
