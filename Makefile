# Two commands do everything: `make demo` and `make test`. Both need only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The tests start hundreds of processes: without bytecode that is kept, each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types docs unit conformance test-aarch64 wheel release lock clean

demo: $(READY)
	@$(BIN)/python examples/demo.py

test: lint types docs unit

lint: $(READY)
	$(BIN)/ruff check src tests examples bench docs/generate.py .ci
	$(BIN)/ruff format --check src tests examples bench docs/generate.py .ci
	$(BIN)/lint-imports --no-logo
	$(BIN)/vulture

types: $(READY)
	$(BIN)/mypy

# The site, into build/site. Warnings are errors (`strict` in mkdocs.yml; --quiet would hide them); nothing is fetched.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

unit: $(READY)
	FUSEVM_TIER=native $(BIN)/python -m pytest -n 2 $(wildcard tests/test_reference*.py)
	$(BIN)/python -m pytest -n 2

# The official suites, where the fixtures are (FUSEVM_FIXTURES, default ../shared/fixtures).
FUSEVM_FIXTURES ?= ../shared/fixtures
conformance: $(READY)
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --tier reference
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --tier native
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --tier native-tiered
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --tier auto
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --tier regions
	$(BIN)/fusevm statetest $(FUSEVM_FIXTURES)/state_tests.tar.xz --no-fuse
	$(BIN)/fusevm blocktest $(FUSEVM_FIXTURES)/blockchain_tests.tar.xz --tier reference
	$(BIN)/fusevm blocktest $(FUSEVM_FIXTURES)/blockchain_tests.tar.xz --tier native
	$(BIN)/fusevm blocktest $(FUSEVM_FIXTURES)/blockchain_tests.tar.xz --tier auto
	$(BIN)/fusevm bench --dir $(FUSEVM_FIXTURES)/bench --repeat 1 --cold

# The AArch64 wheel on AArch64, in emulation elsewhere: all state tests on native code, bench values, regions.
test-aarch64: $(READY)
	$(BIN)/python .ci/aarch64.py

# With handlers for this platform's processors, so that nobody's first call waits for LLVM; and a pure one.
wheel: $(READY)
	$(BIN)/python .ci/wheels.py here

# sdist and the wheels of all platforms into dist/, checked by twine; those that run here are tried in empty environments
# on every Python from 3.11 on that is here.
release: $(READY)
	$(BIN)/python .ci/release.py

# Pins everything in use, for `make lock` after a change of dependencies.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable | $(BIN)/python .ci/lock.py

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
