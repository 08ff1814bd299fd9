# Two commands do everything on a fresh machine with Python 3.10+ and Java 17+: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help setup java demo test check lint types format fuzz lock audit benchmark clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: java $(READY) ## Make the environment in .venv (the other targets do so by themselves)

java:
	@sh tools/ensure_java.sh

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or newer is needed, and $(PYTHON) is older: run make PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "the environment cannot be made; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@echo "compiling the kernels, once for this checkout"
	$(BIN)/python tools/compile_kernels.py
	@touch $(READY)

demo: setup ## Run the whole job on a generated corpus with known duplicates, and show what it found
	$(BIN)/python jobs/demo.py --directory demo

test: setup ## Run the test suite
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: lint types test ## What CI runs: lint, types, tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: setup ## Random input against readers, tokenizer and settings for three minutes; prints JSON
	$(BIN)/python tools/fuzz.py --seconds 180

lock: setup ## Write requirements.lock anew, as pyproject.toml allows: versions and hashes of all that is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.10 --extra archives --extra dev --upgrade \
		--no-header --no-annotate --no-emit-index-url --output-file requirements.lock pyproject.toml

audit: setup ## Look the locked packages up among known vulnerabilities (asks a service on the network)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --require-hashes --disable-pip --requirement requirements.lock

benchmark: setup ## Measure the search; prints JSON
	$(BIN)/python benchmarks/search.py

clean: ## Remove the environment, the demo and caches
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
