# Plain `make` lists the targets. Each sets up its own .venv on first use.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "h3sim needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: demo
demo: $(READY) ## replay the shipped pages through the eleven schemes of Marx 2019; figures go to demo/
	@mkdir -p demo
	$(BIN)/h3sim compare http2rulez davies-meenan --plot demo/schemes.png

.PHONY: test
test: lint ## lint, types, floors, then every test
	$(BIN)/pytest

.PHONY: lint
lint: $(READY) ## ruff, mypy and the floors (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## rewrite the code as ruff wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: coverage
coverage: $(READY) ## the tests again, with branch coverage
	$(BIN)/pytest --cov --cov-report=term

.PHONY: bench
bench: $(READY) ## speed, as ratios to probes measured in the same run
	$(BIN)/python -m benchmarks

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: $(READY) ## break recordings and sites for a minute, or for FUZZ_SECONDS=n
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

.PHONY: golden
golden: $(READY) ## rewrite the recorded loads in tests/golden
	$(BIN)/python -m tests.golden.rewrite

.PHONY: clean
clean: ## remove the .venv, caches and figures
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks *.egg-info

.PHONY: validate-stacks
validate-stacks: $(READY) ## compare with downloads measured with real stacks (minutes; needs the measurements beside the checkout)
	$(BIN)/python -m validation.stacks

.PHONY: validate-sander
validate-sander: $(READY) ## the directions of Sander 2022 over recorded pages (minutes; over the shipped pages where there are none)
	$(BIN)/python -m validation.sander $(ARGS)

.PHONY: validate-pages
validate-pages: $(READY) ## import tables of real pages and load each under every scheme (minutes; needs the tables beside the checkout)
	$(BIN)/python -m validation.pages
