# Commands on a fresh machine with Python >= 3.10 and < 3.14:
#   make install      environment in .venv, pinned install
#   make train        environment, pinned install, the default experiment, its result
#   make test         the same environment with development tools; lint, types, tests
#   make test-long    the tests that take longest: whole studies, pages and reports, kills; with these, what CI runs
#   make test-all     with the slow tests: those that learn something, and every arm end to end
#   make test-faults  each write of a run fails in turn, by a kill or an error of the disk; signals; damaged files
#   make test-input   11,000 command lines, experiment files, stores, corpora and names in all
#   make results      the reports in docs/results, as reports are written now
#   make docs         the documentation site, in site/
#   make audit        known vulnerabilities of what is installed
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What is installed is a function of these.
SOURCES := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install train test test-long test-all test-faults test-input docs results audit lint clean

help:
	@sed -n 's/^#   //p' Makefile

install: $(VENV)/.installed

train: $(VENV)/.installed
	$(BIN)/python train.py

# Tests start hundreds of Python processes: none should compile anew what another has.
test test-long test-all test-faults test-input: export PYTHONDONTWRITEBYTECODE =
test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# One process more than two cores have: many of these wait for processes of their own.
test-long: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 3 --dist loadfile -m 'long and not slow and not faults'

test-all: lint
	$(BIN)/python -m pytest -n auto --dist loadfile -m 'not faults'

# Each call that changes the store fails in turn; ABLAB_FAULTS=all: in each of eight ways, which takes hours.
test-faults: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist load -m faults

test-input: $(VENV)/.installed-dev
	ABLAB_EXAMPLES=10000 $(BIN)/python -m pytest -n 2 --dist loadfile -m '' -o timeout=14400 tests/input

results: $(VENV)/.installed-dev
	PYTHONPATH=. $(BIN)/python -m benchmarks.publish

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --strict --quiet
	@echo "Results: site/index.html"

audit: $(VENV)/.installed-dev
	$(BIN)/pip-audit --skip-editable

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 10) <= v < (3, 14) else \
	    "ablab needs Python >= 3.10 and < 3.14, this is %d.%d: make PYTHON=python3.12 ..." % v)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch first and alone: its pinned build must be in place before anything asks for a range of it.
$(VENV)/.installed: $(SOURCES) | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV)
