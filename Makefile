# The commands of the project, the same on a desk and in CI. `make help` lists them.
SHELL := /bin/sh
CACHE := $(or $(DATASET_RT_CACHE),$(HOME)/.cache/dataset_rt)
# Outside the checkout, so that a fresh clone on the same machine builds in seconds.
export CARGO_TARGET_DIR ?= $(CACHE)/target
export PYTHONDONTWRITEBYTECODE := 1
# pyo3's build script watches the path of its configuration: a path of the checkout would compile Polars again for
# every clone that shares the target folder, so all commands here name a copy beside that folder.
PYO3_CONFIG := $(CACHE)/pyo3-abi3.txt
CARGO_CONFIG := --config 'env.PYO3_CONFIG_FILE.value="$(PYO3_CONFIG)"'
$(shell mkdir -p $(CACHE) && cmp -s .cargo/pyo3-abi3.txt $(PYO3_CONFIG) || cp .cargo/pyo3-abi3.txt $(PYO3_CONFIG))
$(shell tools/claim-target "$(CARGO_TARGET_DIR)")

PYTHON = $(shell tools/find-python 3.11 3.12 3.13)
VENV := .venv
HERE := $(CURDIR)
PY := $(VENV)/bin/python
WHEEL_DIR := dist/dev
SOURCES := $(shell find crates python/dataset_rt -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi') \
	Cargo.toml Cargo.lock pyproject.toml $(wildcard .cargo/*)

.PHONY: help
help:
	@sed -n 's/^## //p' Makefile

## make quickstart    build the package in a venv of its own and run the main job on real data
.PHONY: quickstart
quickstart: $(VENV)/quickstart.stamp
	$(PY) examples/quickstart.py

## make test          the full test suite, and a core subset on every other Python found and on the oldest Polars
.PHONY: test
test: $(VENV)/test.stamp
	tools/test-suite $(PY)
	$(PY) docs/run_snippets.py
	$(PY) docs/run_snippets.py README.md
	tools/test-core $(WHEEL_DIR)
	tools/test-polars-floor $(WHEEL_DIR) $(CACHE)/polars-floor-venv $(PYTHON)

## make test-torch    the tests that need PyTorch, in a venv outside the checkout (5 GB, kept and reused)
.PHONY: test-torch
test-torch: $(WHEEL_DIR)/wheel.stamp
	tools/make-venv $(CACHE)/torch-venv $(PYTHON) requirements/torch.txt
	tools/install-wheel $(CACHE)/torch-venv/bin/python $(WHEEL_DIR)/*.whl
	$(CACHE)/torch-venv/bin/python -m pytest tests/torch
	$(CACHE)/torch-venv/bin/python examples/torch_loop.py
	$(CACHE)/torch-venv/bin/python docs/run_snippets.py docs/guides/torch.md

## make lint          rustfmt, clippy, ruff, mypy, stubtest; warnings are errors
.PHONY: lint
lint: lint-rust lint-python

.PHONY: lint-rust
lint-rust: prerequisites
	cargo fmt --all --check
	cargo clippy $(CARGO_CONFIG) --quiet --workspace --all-targets -- -D warnings

.PHONY: lint-python
lint-python: $(VENV)/lint.stamp
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(PY) -m mypy.stubtest dataset_rt._native
	cd spec/readers/python && $(HERE)/$(VENV)/bin/mypy

## make rust-test     the tests of the format and runtime crates
.PHONY: rust-test
rust-test: prerequisites
	cargo test --quiet

# The independent readers: only the targets below need Go and Node.
GO_READER := $(VENV)/dataset-rt-conform
NODE_READER := spec/readers/typescript/dist/conform/main.js
PYTHON_READER := PYTHONPATH=spec/readers/python $(PY) -m dataset_rt_reader
export GOTOOLCHAIN := local
export READER_GO := $(HERE)/$(GO_READER)
export READER_TYPESCRIPT := node $(HERE)/$(NODE_READER)

## make vectors       the specification's vectors: schema, regeneration, and the crates and three readers against them
.PHONY: vectors
vectors: $(VENV)/lint.stamp $(GO_READER) $(NODE_READER)
	$(PY) spec/vectors/generate.py --check
	$(PY) spec/vectors/check.py
	$(VENV)/bin/check-jsonschema --schemafile spec/manifest.schema.json spec/vectors/v1/valid/*/cache/manifest.json
	cargo test --quiet -p dataset_rt_format --test conformance --example dump
	cargo test --quiet -p dataset_rt_runtime --test read_vectors --test sampling_vectors
	$(PYTHON_READER) --vectors spec/vectors
	$(GO_READER) --vectors spec/vectors
	$(READER_TYPESCRIPT) --vectors spec/vectors

## make readers       linters and own tests of the readers in spec/readers (Go 1.24, Node 20)
.PHONY: readers
readers: $(VENV)/lint.stamp $(GO_READER) $(NODE_READER)
	cd spec/readers/python && $(HERE)/$(PY) -m pytest -q -p no:cacheprovider
	cd spec/readers/go && test -z "$$(gofmt -l .)" && go vet ./... && go test ./...
	cd spec/readers/typescript && npm test --silent

## make cross         caches of this package against the readers and data-frame libraries, damage at every byte
.PHONY: cross
cross: $(VENV)/test.stamp $(GO_READER) $(NODE_READER)
	$(PY) -m pytest tests/spec -m cross

## make bench-readers the Go reader beside the core on one thread: records of 1 KiB
.PHONY: bench-readers
bench-readers: $(VENV)/test.stamp $(GO_READER)
	cargo build $(CARGO_CONFIG) --quiet --release -p dataset_rt_runtime --example iterate
	$(PY) -m benches.readers --core $(CARGO_TARGET_DIR)/release/examples/iterate

.PHONY: reader-prerequisites
reader-prerequisites:
	@tools/check-prerequisites readers

$(GO_READER): $(shell find spec/readers/go -name '*.go' -o -name go.mod) | $(VENV)/build.stamp reader-prerequisites
	cd spec/readers/go && go build -o $(HERE)/$@ ./cmd/dataset-rt-conform

spec/readers/typescript/node_modules/.package-lock.json: spec/readers/typescript/package-lock.json | reader-prerequisites
	cd spec/readers/typescript && npm ci --no-audit --no-fund --silent
	@touch $@

$(NODE_READER): spec/readers/typescript/node_modules/.package-lock.json spec/readers/typescript/tsconfig.json \
		$(shell find spec/readers/typescript/src -name '*.ts')
	cd spec/readers/typescript && npm run --silent build
	@touch $@

## make build         the wheel with the development profile: Polars unoptimised, our crates optimised
.PHONY: build
build: $(WHEEL_DIR)/wheel.stamp

## make wheel         the release wheel, into dist/release (about ten minutes cold)
.PHONY: wheel
wheel: $(VENV)/build.stamp
	tools/build-wheel $(VENV)/bin/maturin dist/release --release $(CARGO_CONFIG)

## make bench         beside plain loops and a C limit; a release build in a venv of its own
.PHONY: bench
bench: bench-draws bench-venv
	DATASET_RT_DRAWS=$(DRAWS) $(BENCH_PY) -m benches.run $(BENCH)

## make bench-peers   beside other libraries, which it installs from PyPI (12 GB with the data); goes on where it stopped
.PHONY: bench-peers
bench-peers: bench-venv
	$(BENCH_PY) -m benches.peers $(PEERS)

## make bench-growth  cost a sample, open time and memory at 100 k, 1 M and 10 M samples
.PHONY: bench-growth
bench-growth: bench-venv
	$(BENCH_PY) -m benches.growth $(GROWTH)

## make bench-expressions  expressions and scans beside NumPy, Polars, scikit-learn and torch
.PHONY: bench-expressions
bench-expressions: bench-venv
	$(BENCH_PY) -m benches.expressions $(EXPRESSIONS)

## make bench-page    the pages of figures in docs/ from the results of the runs
.PHONY: bench-page
bench-page: bench-venv
	$(BENCH_PY) -m benches.page

## make profile       where the time goes, with perf: PROFILE="W1 shuffled"
.PHONY: profile
profile: bench-venv
	tools/profile $(BENCH_PY) $(PROFILE)

BENCH_PY := $(CACHE)/bench-venv/bin/python
DRAWS := $(CARGO_TARGET_DIR)/bench-quick/examples/draws

.PHONY: bench-venv
bench-venv: prerequisites
	tools/make-venv $(CACHE)/bench-venv $(PYTHON) requirements/build.txt requirements/test.txt
	tools/build-wheel $(CACHE)/bench-venv/bin/maturin dist/bench --profile bench-quick $(CARGO_CONFIG)
	tools/install-wheel $(BENCH_PY) dist/bench/*.whl

.PHONY: bench-draws
bench-draws: prerequisites
	cargo build --quiet $(CARGO_CONFIG) --profile bench-quick -p dataset_rt_runtime --example draws

## make instructions  instructions a sample under callgrind, beside a baseline; skipped where there is no valgrind
.PHONY: instructions
instructions: $(VENV)/test.stamp
	$(PY) -m benches.instructions $(INSTRUCTIONS)

## make bench-smoke   the same on tiny workloads with the development build: shows that it runs, not how fast
.PHONY: bench-smoke
bench-smoke: $(VENV)/test.stamp
	rm -rf $(VENV)/bench-smoke
	$(PY) -m benches.run --quick --dir $(VENV)/bench-smoke
	$(PY) -m benches.peers --quick --workloads W1 --only dataset_rt --dir $(VENV)/bench-smoke
	$(PY) -m benches.page --any --dir $(VENV)/bench-smoke --out $(VENV)/bench-smoke

## make fuzz-smoke    a fixed number of runs of each fuzz target, with a fixed seed
.PHONY: fuzz-smoke
fuzz-smoke: prerequisites
	tools/fuzz smoke

## make fuzz          each fuzz target for FUZZ_SECONDS (600)
.PHONY: fuzz
fuzz: prerequisites
	tools/fuzz all $(or $(FUZZ_SECONDS),600)

## make long          the long forms of the tests of crashes, races, damage, sizes and scale (an hour, 10 GB)
.PHONY: long
long: $(VENV)/test.stamp $(GO_READER) $(NODE_READER)
	DATASET_RT_LONG=1 cargo test --quiet -p dataset_rt_runtime
	PROPTEST_CASES=5000 cargo test --quiet -p dataset_rt_runtime --test any_cache
	DATASET_RT_LONG=1 $(PY) -m pytest --timeout 3600 tests

## make test-release  the Python tests on a build as users have it, without link-time optimisation (10 minutes to compile)
.PHONY: test-release
test-release: bench-venv
	$(BENCH_PY) -m pytest tests

## make soak          memory, descriptors and threads over many epochs, iterators and updates
.PHONY: soak
soak: $(VENV)/test.stamp
	$(PY) -m tests.soak long

.PHONY: prerequisites
prerequisites:
	@tools/check-prerequisites

$(VENV)/build.stamp: requirements/build.txt
	@tools/check-prerequisites
	tools/make-venv $(VENV) $(PYTHON) requirements/build.txt
	@touch $@

$(WHEEL_DIR)/wheel.stamp: $(VENV)/build.stamp $(SOURCES)
	tools/build-wheel $(VENV)/bin/maturin $(WHEEL_DIR) $(CARGO_CONFIG)
	@touch $@

$(VENV)/wheel.stamp: $(WHEEL_DIR)/wheel.stamp
	tools/install-wheel $(PY) $(WHEEL_DIR)/*.whl
	@touch $@

$(VENV)/quickstart.stamp: $(VENV)/wheel.stamp requirements/quickstart.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/quickstart.txt
	@touch $@

$(VENV)/test.stamp: $(VENV)/wheel.stamp requirements/test.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@touch $@

$(VENV)/lint.stamp: $(VENV)/test.stamp requirements/lint.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/lint.txt
	@touch $@

## make clean         removes what was made inside the checkout
.PHONY: clean
clean:
	rm -rf $(VENV) dist bench-results .mypy_cache .pytest_cache .ruff_cache
	cd spec/readers/typescript && rm -rf node_modules dist build
