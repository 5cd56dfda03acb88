# `make run` and `make test` need Python >= 3.11, git and a package index, nothing else.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
PROFILE ?= tiny
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))

.PHONY: run test test-slow bench lab format clean

run: $(INSTALLED)  ## execute the default workbook headless; prints the report's path
	$(BIN)/cselab run --profile $(PROFILE) --jobs $(JOBS)

test: $(INSTALLED)  ## linters, import contracts and the fast tests
	$(BIN)/ruff check cselab tests notebooks
	$(BIN)/ruff format --check cselab tests notebooks
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(INSTALLED)  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

bench: $(INSTALLED)  ## timings against named peers, into outputs/reference/benchmarks.json; CSELAB_DATA for real text
	$(BIN)/python tests/benchmarks/bench.py

lab: $(INSTALLED)  ## open the workbook in JupyterLab
	$(BIN)/jupyter lab notebooks

format: $(INSTALLED)
	$(BIN)/ruff check --fix cselab tests notebooks
	$(BIN)/ruff format cselab tests notebooks
	$(BIN)/nbstripout notebooks/*.ipynb

clean:  ## the environment and everything that runs wrote; results kept for reference stay
	rm -rf .venv outputs/runs outputs/stages outputs/cache .pytest_cache .ruff_cache .hypothesis

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "cselab needs Python 3.11 or newer; found $$(python3 --version 2>&1). Install one, or: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null; then \
		set -x; uv venv --quiet --allow-existing --python "$(PYTHON)" .venv && \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
		set -x; $(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $@
