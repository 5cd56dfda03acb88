# `make first`, `make run` and `make test` need only Python >= 3.11, git and a package index.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
CODE := cselab tests notebooks benchmarks docs outputs/reference conftest.py
# where there are several GPUs, cselab runs one notebook on each
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); g=$$(nvidia-smi -L 2>/dev/null | grep -c GPU); \
	[ $$g -gt 1 ] || echo $$((n < 4 ? n : 4)))

.PHONY: first run electives test test-slow bench docs slides lab format clean clean-outputs

first: $(INSTALLED)  ## a first hour: four notebooks; prints the page to read first
	$(BIN)/cselab run 00 01 02 11 --jobs 2

run: $(INSTALLED)  ## execute the core chapters headless; prints their report's path
	$(BIN)/cselab run core $(if $(PROFILE),--profile $(PROFILE)) $(if $(JOBS),--jobs $(JOBS))

electives: $(INSTALLED)  ## execute the other chapters
	$(BIN)/cselab run electives $(if $(PROFILE),--profile $(PROFILE)) $(if $(JOBS),--jobs $(JOBS))

test: $(INSTALLED)  ## linters, types, import contracts and the fast tests
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --durations=20 \
		--doctest-modules tests cselab

test-slow: $(INSTALLED)  ## tests that take minutes
	$(BIN)/python -m pytest -m slow --durations=15 tests/workbook/browser  # they take all cores
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal --durations=15 \
		--ignore tests/workbook/browser

# set CSELAB_DATA for real text
bench: $(INSTALLED)  ## time cselab and its peers; writes outputs/reference/benchmarks.json
	$(BIN)/python benchmarks/bench.py

docs: run  ## the documentation site, outputs/docs/site/index.html, with the executed notebooks
	$(BIN)/python docs/pages.py
	$(BIN)/python docs/build_site.py

slides: $(INSTALLED)  ## a lecture's slides, outputs/docs/slides.html
	$(BIN)/python docs/slides.py

lab: $(INSTALLED)  ## open the workbook in JupyterLab
	$(BIN)/jupyter lab notebooks

format: $(INSTALLED)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	$(BIN)/nbstripout notebooks/*.ipynb

clean:  ## remove the environment and the tools' caches
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis

clean-outputs:  ## remove everything that was run and trained here
	find outputs -mindepth 1 -maxdepth 1 ! -name reference ! -name '.*' -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { \
		echo "cselab needs Python 3.11 or newer; found $$(python3 --version 2>&1)." >&2; \
		echo "Install one, or: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null; then \
		set -x; uv venv --quiet --allow-existing --python "$(PYTHON)" .venv && \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev,real]'; \
	else \
		set -x; $(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,real]'; \
	fi
	@touch $@
