# Everything runs from a fresh clone with nothing but Python >= 3.10 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# make test JOBS=2: as many tests at a time; by default as many as there are processors.
JOBS ?= logical
PYTEST := -m pytest -q -n $(JOBS) --dist worksteal

FLOORS := .venv-floors

# The kernels are compiled when the package is installed, and again when their sources change.
NATIVE := hatch_build.py $(wildcard accel_oct/native/source/*)
# Sanitizers need a compiler of the system.
SANITIZER ?= g++
SANITIZED ?= tests/native/test_native.py $(addprefix tests/exact/test_,ordered.py d2s.py frontier.py local_rules.py) \
	$(addprefix tests/solving/test_,feature_sets.py tally_constraints.py) tests/pricing/test_pricing.py \
	tests/solving/test_near_optimal.py tests/data/test_tally.py

.PHONY: demo test test-slow test-bench test-long test-floors test-sanitized coverage mutants fuzz fuzz-native models lint docs wheel wheels \
	release clean

# Two stamps, so that the demo does not wait for the test tools.
$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	@touch $@

$(VENV)/.core: $(VENV)/.made pyproject.toml $(NATIVE)
	$(PIP) install --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core benchmarks/pyproject.toml
	$(PIP) install --editable ".[test,lint]" --editable benchmarks
	@touch $@

# An editable install compiles the kernels for the processor of this machine; this adds the other CPU levels.
$(VENV)/.levels: $(VENV)/.test $(NATIVE)
	$(PIP) install "ziglang>=0.13"
	$(BIN)/python hatch_build.py
	@touch $@

demo: $(VENV)/.core
	$(BIN)/python -m accel_oct.demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python $(PYTEST)

# The slow tests: more data, solvers and processes. PART=1/3 runs every third of them.
PART ?=
test-slow: $(VENV)/.levels
	$(BIN)/python $(PYTEST) -m "slow and not long" --hypothesis-profile=ci $(if $(PART),--part $(PART))

# The tests of the benchmark package.
test-bench: $(VENV)/.test
	$(BIN)/python $(PYTEST) benchmarks/tests

# The kernels under address and undefined-behaviour sanitizers: the border to Python, and the tests that use all of them.
# Reports of sanitizers go to standard error, past pytest: hence --capture=sys.
test-sanitized: $(VENV)/.test
	CXX="$(SANITIZER)" $(BIN)/python hatch_build.py --sanitized
	ACCEL_OCT_CPU=sanitized ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	LD_PRELOAD="$$($(SANITIZER) -print-file-name=libasan.so) $$($(SANITIZER) -print-file-name=libubsan.so)" \
		$(BIN)/python -m pytest -q --capture=sys -p no:faulthandler -o faulthandler_timeout=0 -o timeout=1800 \
		-W ignore::pytest.PytestConfigWarning $(SANITIZED)

# The rest: slow and long tests, and many examples of each property.
test-long: $(VENV)/.test
	$(BIN)/python $(PYTEST) -m "slow or long or hypothesis" --hypothesis-profile=long \
		-o timeout=1800 -o faulthandler_timeout=1860

# All tests on the oldest versions that pyproject.toml claims.
$(FLOORS)/.made: pyproject.toml benchmarks/pyproject.toml tests/programs/floors.py
	$(PYTHON) -m venv --clear $(FLOORS)
	$(FLOORS)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade pip packaging tomli
	$(FLOORS)/bin/python tests/programs/floors.py >$(FLOORS)/constraints.txt
	$(FLOORS)/bin/python -m pip --disable-pip-version-check --quiet install \
		--constraint $(FLOORS)/constraints.txt --editable ".[test]" --editable benchmarks
	@touch $@

test-floors: $(FLOORS)/.made
	$(FLOORS)/bin/python tests/programs/floors.py --check
	$(FLOORS)/bin/python $(PYTEST) -m "not long"

$(VENV)/.coverage: $(VENV)/.test
	$(PIP) install --editable ".[coverage]"
	@touch $@

# Which lines and branches the tests run. Tracing is slow, so each test gets three times its time.
coverage: $(VENV)/.coverage
	$(BIN)/python $(PYTEST) -m "not long" -o timeout=900 -o faulthandler_timeout=960 --cov --cov-report=term

# make mutants COUNT=60 ONLY=exact SEED=1: plants generated faults one at a time and sees whether the tests notice.
# TESTS and OPERATOR, for one survivor: other tests than those of the room; faults of one operator.
ONLY ?=
SEED ?= 0
TESTS ?=
OPERATOR ?=
mutants: COUNT := 60
mutants: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m programs.mutation --only "$(ONLY)" --count $(COUNT) --seed $(SEED) \
		--tests "$(TESTS)" --operator "$(OPERATOR)"

# make fuzz COUNT=10000 FUZZ=--all: random instances against an exact oracle.
COUNT ?= 2000
FUZZ ?= --preset default
fuzz: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m programs.fuzz $(FUZZ) --count $(COUNT)

# make fuzz-native COUNT=100000: changed arguments of the kernels, and data at the ends of their counters.
fuzz-native: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m programs.fuzz_native --count $(COUNT)

# make models COUNT=100000 BACKEND=scip: random LPs and MIPs with coefficients of mixed size against exact arithmetic.
BACKEND ?= highs
models: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m programs.mixed_models --backend $(BACKEND) --count $(COUNT)

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install --editable ".[docs]"
	@touch $@

# The site, in docs/_build/html. Warnings are errors, and so is a link that leads nowhere.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

# A source distribution and a wheel for this machine, in dist/.
wheel: $(VENV)/.made
	$(PIP) install --group wheel
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# A source distribution and a wheel for every platform, cross-compiled, in dist/; each is inspected.
wheels: $(VENV)/.made
	$(PIP) install --group wheel
	rm -rf dist
	$(BIN)/python -m build --no-isolation --sdist
	for target in linux-aarch64 musl-x86_64 musl-aarch64 macos-x86_64 macos-arm64 windows-x86_64 linux-x86_64; do \
		ACCEL_OCT_TARGET=$$target $(BIN)/python -m build --no-isolation --wheel || exit 1; \
	done
	# The kernels of another platform would stay in the tree, and an editable install would find none of its own.
	$(BIN)/python hatch_build.py --machine
	$(BIN)/python tests/programs/wheels.py dist

# All that a release needs, in dist/: wheels of all platforms, source distributions, and accel-oct-bench. Metadata are checked,
# and each wheel that this machine can run is tried in an empty environment. Nothing is published.
# make release CHECKED=1: without linters and tests.
CHECKED ?=
release:
	$(if $(CHECKED),,$(MAKE) test)
	$(if $(CHECKED),,$(MAKE) test-slow)
	$(if $(CHECKED),,$(MAKE) test-bench)
	$(MAKE) wheels
	$(PIP) install --group release
	$(BIN)/python -m build --no-isolation --outdir dist benchmarks
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/programs/clean_room.py dist --sdist

clean:
	rm -rf docs/_build docs/auto_examples docs/api/generated docs/sg_execution_times.rst
	rm -rf $(VENV) $(FLOORS) build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache
