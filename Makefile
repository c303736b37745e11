# Everything happens in .venv; `make` lists the targets. Works with GNU make 3.81.

VENV := .venv
# Programs that xmtree is compared with; PECOS needs another version of numpy.
PEERS := .venv-peers
PECOS := .venv-pecos
EXTREME := benches/figures-extreme
BIN := $(VENV)/bin
PHASE := @tools/phase
VW = $(BIN)/python -m pytest benches/test_bench_vw.py benches/test_bench_next_word.py --benchmark-only -rs $(SELECT)
# The compiled module, inside the source tree: the package is installed editable,
# so that only a change of Rust code needs a build.
MODULE := python/xmtree/_core.abi3.so
RUST := $(shell find rust -name '*.rs') Cargo.toml Cargo.lock
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test bench bench-check bench-record count-atomics bench-extreme bench-dask reproduce peers figures docs wheel release-check clean install fmt clippy cargo-test ruff mypy stubtest pytest frontier bench-vw floors build-times fuzz fuzz-seeds sanitize-address sanitize-thread miri long-runs

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name what; do \
		printf '  make %-16s %s\n' "$$name" "$$what"; done

demo: install ## Build, install, and compare every learner on the data inside the package
	@$(BIN)/xmtree demo

test: fmt clippy cargo-test ruff mypy install stubtest pytest docs ## Check and test everything

docs: install $(VENV)/.docs ## Build the documentation into docs/_build/html, warnings are errors
	$(PHASE) "docs" $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

bench: install $(VENV)/.bench ## Time the core (Criterion) and the package; the figures come last
	@tools/check-rust
	$(PHASE) "tests of what measures" $(BIN)/python -m pytest -o norecursedirs=".*" tests/laboratory
	$(PHASE) "cargo bench" cargo bench --locked
	$(PHASE) "pytest-benchmark" $(BIN)/python -m pytest benches --benchmark-only -rs \
		--ignore benches/test_bench_extreme.py --ignore benches/test_bench_frontier.py \
		$(if $(FIGURES),--figures "$(FIGURES)")

# SELECT='-k lomtree' runs a part.
bench-vw: install $(VENV)/.bench ## Compare with Vowpal Wabbit alone, and beside a process that streams through memory
	$(PHASE) "beside Vowpal Wabbit" $(VW)
	$(PHASE) "and while another core streams through memory" $(VW) --loaded

# Not part of `make test`: the optimised program takes minutes to build. SELECT='--only lomtree'
# counts a part.
bench-check: $(VENV)/.python ## Compare instruction counts of the hot loops with those recorded (valgrind)
	@tools/check-rust
	$(PHASE) "bench-check" $(BIN)/python tools/bench_check.py $(SELECT)

bench-record: $(VENV)/.python ## Record the instruction counts in benches/instructions.json
	@tools/check-rust
	$(PHASE) "bench-record" $(BIN)/python tools/bench_check.py --record $(SELECT)

# Where it locks more than allowed, it fails. SELECT='--only lomtree' counts a part, and then writes nothing.
count-atomics: $(VENV)/.python ## Count what sixteen threads lock (valgrind), write benches/figures-atomics.txt
	@tools/check-rust
	$(PHASE) "count-atomics" $(BIN)/python tools/count_atomics.py $(or $(SELECT),benches/figures-atomics.txt)

floors: $(VENV)/.python ## Time each hot loop over what the machine allows, write benches/figures-floors.txt
	@tools/check-rust
	$(PHASE) "floors" env PYTHONPATH=benches $(BIN)/python -m floors benches/figures-floors.txt

build-times: $(VENV)/.python ## Build from nothing and report the processor time of each crate, write benches/figures-build.txt
	@tools/check-rust
	$(PHASE) "build times" $(BIN)/python tools/build_times.py benches/figures-build.txt

# SELECT='-k "bibtex and xmtree" --seeds 1' runs a part; what was run already is not run again.
bench-extreme: install $(VENV)/.bench $(PECOS)/.done ## Compare with omikuji and PECOS on very many labels (hours)
	$(PHASE) "pytest-benchmark" env XMTREE_PEERS=$(PECOS)/bin/python $(BIN)/python -m pytest \
		benches/test_bench_extreme.py --benchmark-disable -rs --time-limit 3600 \
		--results $(EXTREME).jsonl --figures $(EXTREME).txt $(SELECT)
	@cd benches && ../$(BIN)/python -m extreme ../$(EXTREME).jsonl ../docs/figures >/dev/null
	@$(BIN)/python benches/pages.py

# SELECT='-k crossover' runs a part, and then draws no plot.
frontier: install $(VENV)/.bench ## Error against the time of a prediction; from how many classes on trees pay (minutes)
	$(PHASE) "pytest-benchmark" $(BIN)/python -m pytest benches/test_bench_frontier.py \
		--benchmark-disable -rs --figures benches/figures-frontier.txt $(SELECT)

# A cluster of two processes on this machine, and what follows for larger ones.
bench-dask: install $(VENV)/.bench ## Time training on a cluster, write benches/figures-dask.json and docs/dask.md
	$(PHASE) "bench-dask" $(BIN)/python benches/dask_scaling.py benches/figures-dask.json
	@$(BIN)/python benches/pages.py

# SELECT='--items gamble --seeds 1' runs a part; what was run already is not run again. XMTREE_PEERS
# names a Python that has omikuji and PECOS (.venv-pecos/bin/python), else comparisons with them are left out.
reproduce: install ## Run what the papers state (an hour) and write docs/reproduction.md
	$(PHASE) "reproduce" env PYTHONPATH=benches $(BIN)/python -m reproduce \
		--results benches/reproduction.jsonl --page docs/reproduction.md $(SELECT)

# SELECT='--data naics --only omikuji --runs 1' runs a part, '--list' lists the parts, '--runs 0'
# only writes the page. What was run already is not run again, unless with '--again'.
peers: install $(VENV)/.bench $(PEERS)/.done $(PECOS)/.done ## Compare with other programs, write docs/peers.md (hours)
	$(PHASE) "peers" env PYTHONPATH=benches $(BIN)/python -m peers \
		--pythons $(PEERS)/bin/python $(PECOS)/bin/python --results benches/figures-peers.jsonl \
		--json benches/figures-peers.json --page docs/peers.md --figures docs/figures $(SELECT)
	@$(BIN)/python benches/pages.py

# SELECT='--only one-row' takes one file anew.
figures: install $(VENV)/.bench $(PEERS)/.done $(PECOS)/.done ## Take every figure of README and docs, from a clean commit (hours)
	$(PHASE) "figures" $(BIN)/python benches/figures.py $(SELECT)

# Nightly Rust, cargo-fuzz (cargo install cargo-fuzz) and a C++ compiler. SECONDS is for each target,
# SELECT='gamble xmc' runs these. rust/tests/fuzz has the bodies, which `make test` runs on stable Rust.
# SELECT=properties needs neither: it runs the property tests on fresh seeds.
fuzz: install $(VENV)/.test ## Run property tests on fresh seeds, and libFuzzer on files, text and parameters (nightly)
	$(PHASE) "fuzz" $(BIN)/python tools/fuzz.py $(or $(filter-out 0,$(SECONDS)),60) $(SELECT)

fuzz-seeds: ## Write the seeds of the fuzz targets anew
	rm -rf fuzz/seeds
	$(PHASE) "fuzz-seeds" cargo test --quiet --locked --test fuzz write_seeds -- --ignored

# Nightly Rust. SELECT names tests: those of Python for address, of Rust for the others.
sanitize-address: install $(VENV)/.test ## Run Python tests with an extension built for AddressSanitizer (nightly)
	$(PHASE) "address sanitizer" tools/sanitize address $(SELECT)

sanitize-thread: ## Run the Rust tests of streams and threads under ThreadSanitizer (nightly, with rust-src)
	$(PHASE) "thread sanitizer" tools/sanitize thread $(SELECT)

miri: ## Run the Rust tests of modules with unsafe code in Miri (nightly, with miri)
	$(PHASE) "miri" tools/sanitize miri $(SELECT)

# SELECT='--scale 0.01 --only rounds' runs a part, in small.
long-runs: install $(VENV)/.test ## Long runs and adversarial streams, with their figures (ten minutes)
	$(PHASE) "long runs" $(BIN)/python tests/long_runs.py $(SELECT)

wheel: install ## Build a wheel into dist/
	@tools/check-rust
	$(PHASE) "wheel" $(BIN)/maturin build --release --locked --quiet --out dist

release-check: install $(VENV)/.release ## Install the wheel with the oldest and the newest dependencies, and build the source distribution offline
	@tools/check-rust
	$(PHASE) "release-check" $(BIN)/python tools/release_check.py $(SELECT)

install: $(MODULE) ## Build the package and install it into .venv

fmt:
	@tools/check-rust fmt clippy
	$(PHASE) "cargo fmt" cargo fmt --check

clippy: $(VENV)/.python
	@tools/check-rust fmt clippy
	$(PHASE) "clippy" cargo clippy --quiet --locked --all-targets -- -D warnings
	$(PHASE) "clippy, python" cargo clippy --quiet --locked --all-targets --features python -- -D warnings

cargo-test: ## Test the Rust core, without Python
	@tools/check-rust
	$(PHASE) "cargo test" cargo test --quiet --locked

ruff: $(VENV)/.test
	$(PHASE) "ruff" $(BIN)/ruff check
	$(PHASE) "ruff format" $(BIN)/ruff format --check

mypy: $(VENV)/.test
	$(PHASE) "mypy" $(BIN)/python -m mypy

stubtest: $(VENV)/.test install
	$(PHASE) "stubtest" $(BIN)/python -m mypy.stubtest xmtree._core \
		--mypy-config-file pyproject.toml --allowlist tools/stubtest-allow.txt

# A process for each core, each file of tests in one of them.
pytest: $(VENV)/.test install ## Test the Python package
	$(PHASE) "pytest" $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

clean: ## Remove everything that was built, .venv too
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

# The opponents have no wheel for every machine; without them the rest is measured.
$(VENV)/.bench: $(VENV)/.build
	@$(BIN)/python tools/requirements.py bench >$(VENV)/bench.txt
	@grep -v -e vowpalwabbit -e omikuji -e lightgbm $(VENV)/bench.txt >$(VENV)/bench-rest.txt
	$(PHASE) "install bench tools" $(PIP) -r $(VENV)/bench-rest.txt
	@for opponent in vowpalwabbit omikuji lightgbm; do \
		grep $$opponent $(VENV)/bench.txt >$(VENV)/bench-one.txt; \
		$(PIP) --only-binary $$opponent -r $(VENV)/bench-one.txt || \
			echo "== no $$opponent for this Python and machine: comparisons with it are skipped"; \
	done
	@touch $@

# What has no wheel here is left out of the comparison.
$(PEERS)/.done: benches/peers.txt tools/install-peers
$(PECOS)/.done: benches/peers-pecos.txt tools/install-peers
%/.done:
	@python=$$(tools/find-python) && echo "== $* with $$python" && "$$python" -m venv --clear $*
	$(PHASE) "install peers" tools/install-peers $* $(filter %.txt,$^)
	@touch $@

# Entry points and metadata live in the environment: a change of anything but Rust code
# installs anew, otherwise a build only replaces the module.
$(MODULE): $(VENV)/.build pyproject.toml README.md $(RUST)
	@tools/check-rust
	$(PHASE) "build" env PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet \
		$(if $(filter-out %.rs,$?),,--skip-install)
	@touch $@
