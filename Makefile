# Needs make and Python 3.11 or newer, nothing else. Everything it installs goes to .venv, which belongs to this file.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2

# An interpreter that is gone, or a checkout that was copied elsewhere with its .venv (which would go on running the
# code of the old place): forget the stamp, so that the environment is made anew.
$(shell if [ -f $(VENV)/.made ] && { [ "$$(cat $(VENV)/.made)" != "$$(pwd)" ] || ! $(BIN)/python -c ''; } \
	>/dev/null 2>&1; then rm -f $(VENV)/.made; fi)

.PHONY: help run test lint fast test-slow compat bench format clean
.DELETE_ON_ERROR:

help:
	@echo 'make run        install into .venv; show your sessions and the newest conversation'
	@echo 'make test       linter, formatter, types and the fast tests'
	@echo 'make test-slow  crash, load and large-corpus tests'
	@echo 'make compat     the tests that start the real client (Linux, npm)'
	@echo 'make bench      how fast it is, and against what'
	@echo 'make format     put the code into shape'
	@echo 'make clean      remove .venv and every cache in this directory'

run: $(VENV)/.installed
	@$(BIN)/clew welcome

test: lint fast

lint: $(VENV)/.tools
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# A suite that selects no test must not look like one that passed: pytest says so with exit code 5.
suite = $(BIN)/python -m pytest $(1) || { code=$$?; \
	[ $$code -ne 5 ] || echo 'make $@: no test was selected. A suite that runs nothing shows nothing.' >&2; exit $$code; }

fast: $(VENV)/.tools
	$(call suite,-n $(WORKERS) -m 'not slow and not compat')

test-slow: $(VENV)/.tools
	$(call suite,-m 'slow and not compat')

compat: $(VENV)/.tools
	@$(BIN)/python scripts/client.py test

bench: $(VENV)/.tools
	@$(BIN)/python -m benchmarks

format: $(VENV)/.tools
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

clean:
	rm -rf .venv* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

$(VENV)/.made:
	@python=$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh) && \
	echo "making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV) && pwd > $@

$(VENV)/.installed: pyproject.toml requirements-dev.txt $(VENV)/.made
	$(PIP) install --quiet --constraint requirements-dev.txt --editable .
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(PIP) install --quiet --requirement requirements-dev.txt
	@touch $@
