# Plain `make` shows the targets that a newcomer needs, `make help-all` all of them. Each sets up its
# own .venv on first use. On Windows GNU make finds the shell of Git for Windows; targets marked
# "POSIX" do not run there.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
VENV := .venv
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := $(VENV)/Scripts
else
PYTHON ?= python3
BIN := $(VENV)/bin
endif
# What runs h3sim, and, on top, what its developers run.
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
OLDEST := build/oldest/$(notdir $(BIN))/python
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "h3sim needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --editable .
	@touch $@

$(DEV): $(READY)
	$(PIP) install --editable '.[dev]'
	@touch $@

.PHONY: help
help: ## show the targets that a newcomer needs
	@grep -E '^(demo|test|check|docs):.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /: /'
	@echo 'help-all: list the other targets'

.PHONY: help-all
help-all: ## list all targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /: /' | sort

.PHONY: demo
demo: $(READY) ## replay the shipped pages through the eleven schemes of Marx 2019; figures go to demo/
	@mkdir -p demo
	$(BIN)/h3sim compare http2rulez davies-meenan --plot demo/schemes.png

# Workers share the bytecode of modules, also where the environment forbids to write it beside them.
test check: export PYTHONDONTWRITEBYTECODE :=
test check: export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

.PHONY: test
test: lint ## lint, types, floors, then every test, on all cores: what a change must pass
	$(BIN)/pytest --numprocesses auto --dist worksteal

LONG := $(patsubst %,--ignore=tests/unit/test_%.py,$(shell cat tests/long.txt))

.PHONY: check
check: lint ## a minute before each commit: lint, types, floors, then recorded loads, closed forms, state machines, mutants, and the hand-worked tests that take no longer than a second a file
	$(BIN)/pytest --numprocesses auto --dist worksteal tests/golden tests/theory tests/stateful tests/mutants tests/unit $(LONG)

.PHONY: test-thorough
test-thorough: $(DEV) ## what make test leaves out: every scheme in every law, fresh seeds, ten times the examples (most of an hour; ARGS="tests/stateful" for a part)
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest --numprocesses auto --dist worksteal --h3sim-profile=thorough $(or $(ARGS),tests/property tests/stateful tests/mutants tests/unit tests/theory)

RUNS ?= 20
.PHONY: test-orders
test-orders: $(DEV) ## the tests 20 times, or RUNS=n, in random orders by 1 to 4 workers: all must find the same; goes on where it stopped (two hours; ARGS="tests/unit" for a part)
	$(BIN)/python -m tests.orders $(RUNS) $(ARGS)

PYTHONS ?= python3.11 python3.12 python3.13 python3.14
.PHONY: test-pythons
test-pythons: ## what was recorded and the laws of loads, under each Python that is installed (minutes; ARGS="tests" for all, PYTHONS=... for others)
	@for python in $(PYTHONS); do \
	  $$python -c '' 2>/dev/null || { echo "$$python is not installed: left out"; continue; }; \
	  venv=build/$$(basename $$python); \
	  $$python -m venv $$venv && $$venv/$(notdir $(BIN))/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
	    && $$venv/$(notdir $(BIN))/python -m pytest -p no:cacheprovider --numprocesses auto $(or $(ARGS),tests/golden tests/property/test_determinism.py tests/property/test_load_laws.py) \
	    || exit 1; \
	done

.PHONY: test-oldest
test-oldest: ## the same with the oldest version of every library that setup.cfg allows (minutes; ARGS="tests" for all)
	$(PYTHON) -m venv build/oldest
	$(OLDEST) -m pip install --quiet --disable-pip-version-check uv
	$(OLDEST) -m uv pip install --quiet --python $(OLDEST) --resolution lowest-direct --editable '.[dev]'
	@# Old libraries use what newer ones below them have deprecated.
	$(OLDEST) -m pytest -W ignore::DeprecationWarning -o cache_dir=build/oldest/.cache --numprocesses auto $(or $(ARGS),tests/golden tests/property/test_determinism.py tests/property/test_load_laws.py)

.PHONY: constraints
constraints: $(DEV) ## resolve the newest version of every library into constraints.txt; PIP_CONSTRAINT=constraints.txt make ... installs these
	$(PIP) install uv
	$(BIN)/python -m uv pip compile setup.cfg --quiet --all-extras --universal --python-version 3.11 \
	  --no-emit-index-url --no-annotate --no-header --upgrade --output-file constraints.txt

.PHONY: lint
lint: $(DEV) ## ruff, mypy and the floors (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(DEV) ## rewrite the code as ruff wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

COMPILED := build/compiled

.PHONY: wheel-compiled
wheel-compiled: $(DEV) ## a wheel for this platform with the core compiled by mypyc, into dist/ (needs a C compiler)
	H3SIM_COMPILE=1 $(BIN)/python -m build --wheel

.PHONY: test-compiled
test-compiled: ## every test on the compiled build, in a copy under build/ (POSIX; minutes; needs a C compiler; ARGS="tests/unit" for a part; H3SIM_OPT_LEVEL=0 compiles sooner)
	rm -rf $(COMPILED) && mkdir -p $(COMPILED)
	git ls-files -z | tar -c --null -T - -f - | tar -x -C $(COMPILED) -f -
	$(PYTHON) -m venv $(COMPILED)/.venv
	cd $(COMPILED) && H3SIM_COMPILE=1 .venv/bin/pip install --quiet --disable-pip-version-check '.[dev]'
	@# What was installed is imported, and not the folder h3sim beside the tests.
	cd $(COMPILED) && H3SIM_COMPILE=1 .venv/bin/python -P -m pytest --import-mode=append --numprocesses auto $(or $(ARGS),tests)

.PHONY: coverage
coverage: $(DEV) ## the tests again, with branch coverage
	$(BIN)/pytest --cov --cov-report=term

.PHONY: guard-speed
guard-speed: $(DEV) ## count, without a clock, what twelve loads cost; fails at 5 % more than recorded (seconds; ARGS=--write records, ARGS=--compiled counts the build of test-compiled with valgrind)
	PYTHONHASHSEED=0 $(BIN)/python -m benchmarks.guard $(ARGS)

RELEASE := build/release
.PHONY: release-check
release-check: $(DEV) ## build sdist and wheel, check their metadata, install each into an empty environment, and draw the demo with it (minutes)
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	$(BIN)/python -m build --outdir $(RELEASE)/dist >$(RELEASE)/build.log 2>&1 || { tail -n 30 $(RELEASE)/build.log; exit 1; }
	$(BIN)/python -m twine check --strict $(RELEASE)/dist/*
	@cd $(RELEASE) && for kind in whl tar.gz; do \
	  echo "an empty environment with h3sim's .$$kind" \
	  && $(PYTHON) -m venv venv-$$kind \
	  && venv-$$kind/$(notdir $(BIN))/python -m pip install --quiet --disable-pip-version-check dist/*.$$kind \
	  && venv-$$kind/$(notdir $(BIN))/h3sim --version \
	  && venv-$$kind/$(notdir $(BIN))/h3sim compare http2rulez davies-meenan --plot $$kind.png >$$kind.txt \
	  && test -s $$kind-davies-meenan.png || exit 1; \
	done
	@cmp $(RELEASE)/whl.txt $(RELEASE)/tar.gz.txt

.PHONY: check-tag
check-tag: ## fail unless TAG=vX.Y.Z is this version, in the code, the citation and the changelog
	@version=$$(sed -nE 's/^__version__ = "(.*)"/\1/p' h3sim/_version.py); \
	  test "$(TAG)" = "v$$version" || { echo "the tag $(TAG) is not v$$version"; exit 1; }; \
	  grep -q "^version: $$version$$" CITATION.cff && grep -q "^## $$version, " CHANGELOG.md

CIBW := build/cibuildwheel
.PHONY: wheels
wheels: ## wheels compiled for this platform, one for each Python, into build/wheels (half an hour; Linux needs Docker; pyproject.toml says which)
	$(PYTHON) -m venv $(CIBW)
	$(CIBW)/$(notdir $(BIN))/python -m pip install --quiet --disable-pip-version-check 'cibuildwheel>=4,<5'
	$(CIBW)/$(notdir $(BIN))/python -m cibuildwheel --output-dir build/wheels

.PHONY: lint-workflows
lint-workflows: ## lint .github/workflows with actionlint (needs it, or Go)
	@PATH="$$PATH:$(CURDIR)/build/bin"; command -v actionlint >/dev/null || GOBIN="$(CURDIR)/build/bin" go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; \
	  actionlint -color .github/workflows/*.yml

.PHONY: bench
bench: $(DEV) ## speed, as ratios to probes measured in the same run
	$(BIN)/python -m benchmarks

.PHONY: bench-million
bench-million: $(READY) ## plan, interrupt, resume and sum up a study of a million stood-in loads, with the memory of each step (minutes)
	$(BIN)/python -m benchmarks.million $(ARGS)

FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz: $(DEV) ## break what every reader reads for a minute, or for FUZZ_SECONDS=n; guided by coverage where atheris installs
	@$(PIP) install --editable '.[fuzz]' || echo "atheris does not install: inputs are changed blindly"
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

LOADS ?= 10000
FROM ?=
.PHONY: check-loads
check-loads: $(DEV) ## hold 10,000 more random loads over bad links, or LOADS=n FROM=seed, to rules that read only the trace (minutes)
	$(BIN)/python -m tests.checking $(LOADS) $(FROM)

MUTANTS_SECONDS ?= 3600
.PHONY: mutants
mutants: $(DEV) ## make small mistakes in the core for an hour, or MUTANTS_SECONDS=n, and see which the tests notice (ARGS="schedulers" for a part, ARGS=--survivors again)
	$(BIN)/python -m tools.mutation --seconds $(MUTANTS_SECONDS) $(ARGS)

KILLS ?= 200
.PHONY: interrupt-sweeps
interrupt-sweeps: $(READY) ## kill sweeps and their workers at 200 random moments, or KILLS=n: nothing finished is lost
	$(BIN)/python -m tests.interrupting $(KILLS)

FLIPS ?= 5000
.PHONY: flip-bits
flip-bits: $(DEV) ## flip 5000 random bits of a store, one at a time, or FLIPS=n: no answer is another one (minutes)
	$(BIN)/python -m tests.flipping $(FLIPS)

.PHONY: golden
golden: $(DEV) ## rewrite the recorded loads in tests/golden
	$(BIN)/python -m tests.golden.rewrite

DOCS := build/docs
.PHONY: docs
docs: $(READY) ## build the documentation site into build/docs/html, with pictures of schemes and figures, the outputs of the notebooks and, if it was built before, the playground; warnings are errors (two minutes)
	$(PIP) install --editable '.[docs]'
	rm -rf $(DOCS)
	$(BIN)/python -m tools.notebooks
	$(BIN)/python -m tools.docs_site
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs $(DOCS)/source $(DOCS)/html
	$(BIN)/python -m tools.site_links $(DOCS)/html

.PHONY: figures
figures: $(READY) ## draw every figure for five pages into build/figures: full size, 800 pixels, grey, and an index; fails if labels overlap or are cut (minutes; ARGS="FOLDER PAGE...")
	$(BIN)/python -m tools.figures $(ARGS)

AXE := build/axe
.PHONY: check-report
check-report: $(DEV) ## open reports and animations in Chromium: console, network, keyboard, axe-core (a minute; needs Chromium and npm)
	@mkdir -p $(AXE)
	cd $(AXE) && npm pack --silent axe-core && tar xzf axe-core-*.tgz package/axe.min.js
	$(BIN)/python -m tools.check_report $(AXE)/package/axe.min.js

.PHONY: formats
formats: $(READY) ## write the published schemas of all formats anew, from their declarations
	$(BIN)/python -m tools.formats

.PHONY: docs-tables
docs-tables: $(READY) ## write the tables of the documentation that say what is declared
	$(BIN)/python -m tools.docs_tables

.PHONY: client-server
client-server: $(DEV) ## write docs/generated/client-server.md: browsers before servers, over 19 pages (minutes)
	$(BIN)/python -m tools.client_server

.PHONY: qmux
qmux: $(DEV) ## write docs/generated/qmux.md: QMux beside HTTP/2 and HTTP/3, over 19 pages (minutes)
	$(BIN)/python -m tools.qmux

.PHONY: options
options: $(READY) ## write the types of keyword arguments anew, from the declarations of options
	$(BIN)/python -m tools.option_types

.PHONY: croissant
croissant: $(READY) ## write the Croissant metadata of the corpus, and of validation/data from its READMEs and files
	$(BIN)/python -m tools.croissant

.PHONY: playground
playground: $(DEV) ## build the playground and serve it on this machine: h3sim in a browser page (needs npm once; ARGS="--port 9000")
	$(BIN)/python -m tools.playground --serve $(ARGS)

.PHONY: lesson
lesson: $(DEV) ## the slides, plan and handout of docs/lesson.md into build/lesson (seconds; needs npm once; ARGS="--playground URL")
	$(BIN)/python -m tools.lesson $(ARGS)

.PHONY: test-playground
test-playground: $(DEV) ## build the playground, run its core under Node and its page in a Chromium (a minute; needs npm, Node, Chromium)
	$(BIN)/python -m tools.playground
	H3SIM_PLAYGROUND=build/playground $(BIN)/pytest tests/playground $(ARGS)

.PHONY: clean
clean: ## remove the .venv, caches and figures
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks *.egg-info

.PHONY: validate
validate: $(DEV) ## print every table of the pages in docs/validation.md that needs no server (half an hour on two cores; ARGS=headers for those whose names contain it)
	$(BIN)/python -m validation $(ARGS)

.PHONY: validate-all
validate-all: $(DEV) ## the same, and what takes longer or needs servers, browsers or toolchains; says what is missing (hours)
	$(BIN)/python -m validation --all $(ARGS)

.PHONY: validate-hosts
validate-hosts: $(DEV) ## what a connection for each host costs the shipped pages, by scheme (a minute)
	$(BIN)/python -m validation.hosts

.PHONY: validate-synthetic
validate-synthetic: $(DEV) ## compare made-up pages with recorded ones (seconds)
	$(BIN)/python -m validation.synthetic

.PHONY: validate-stacks
validate-stacks: $(DEV) ## compare with downloads measured with real stacks (minutes)
	$(BIN)/python -m validation.stacks $(ARGS)

.PHONY: validate-trees
validate-trees: $(DEV) ## hold the trees to the order of nghttpd's, Node's, h2o's and Apache's frames, beside nginx and HAProxy (a minute or two; needs Node, apt-get install nghttp2-server h2o nginx-light apache2-bin haproxy)
	$(BIN)/python -m validation.trees
	$(BIN)/python -m validation.server_orders

.PHONY: validate-drivers
validate-drivers: $(DEV) ## build the drivers in C, Go, Rust, JavaScript and Python whose toolchain is installed, then those of deployed servers and controllers, and check them (minutes; needs Go, Cargo, cmake and openssl, and apt-get install libnghttp2-dev libnghttp3-dev libclang-dev)
	$(BIN)/python -m validation.scheduler_drivers
	$(BIN)/python -m validation.server_drivers
	$(BIN)/python -m validation.go_handlers
	$(BIN)/python -m validation.controller_drivers
	$(BIN)/python -m validation.live_servers

.PHONY: validate-writes
validate-writes: $(DEV) ## hold what 30 responses at once write to nghttpd's and h2o's frames (seconds; needs apt-get install nghttp2-server h2o)
	$(BIN)/python -m validation.http2_writes $(ARGS)

.PHONY: validate-sander
validate-sander: $(DEV) ## the directions of Sander 2022 over recorded pages (minutes)
	$(BIN)/python -m validation.sander $(ARGS)

.PHONY: validate-pages
validate-pages: $(DEV) ## import tables of real pages and load each under every scheme (minutes)
	$(BIN)/python -m validation.pages

.PHONY: record-corpus
record-corpus: $(DEV) ## record the shipped pages again, from the registries (half an hour; needs Chromium, npm, pip, apt-get)
	$(BIN)/python -m tools.record_corpus $(ARGS)

.PHONY: corpus-figure
corpus-figure: $(DEV) ## draw the shipped pages beside the web's into docs/images, and print the table of docs/generated/corpus.md
	$(BIN)/python -m tools.corpus_figure

.PHONY: validate-recordings
validate-recordings: $(DEV) ## compare with loads in a real Chromium over a link (minutes; needs Chromium and the registries)
	$(BIN)/python -m validation.recordings

.PHONY: validate-chrome
validate-chrome: $(DEV) ## hold requests, urgencies, paints and edits of made-up sites to a real Chromium over a link (ten minutes; needs Chromium)
	$(BIN)/python -m validation.chrome $(ARGS)

.PHONY: validate-sites
validate-sites: $(DEV) ## calibrate the intervals of `h3sim predict` anew, and print their errors on the develop sites (minutes; needs recordings, see docs/generated/recordings.md)
	$(BIN)/python -m validation.sites calibrate
	$(BIN)/python -m validation.sites table $(ARGS)

.PHONY: validate-server-priorities
validate-server-priorities: $(DEV) ## what a server that prioritizes is worth, by browser, network and send buffer (minutes)
	$(BIN)/python -m validation.server_priorities $(ARGS)

.PHONY: validate-intervals
validate-intervals: $(READY) ## how often intervals of made-up studies cover the truth (minutes)
	$(BIN)/python -m validation.intervals

.PHONY: findings
findings: $(DEV) ## judge every result of the papers again and rewrite docs/generated/findings.md (quick: minutes); fails if a verdict changed (ARGS=--update)
	@mkdir -p build
	$(BIN)/python -m tools.findings all --store build/findings.db --markdown docs/generated/findings.md --full-run docs/generated/full-runs.md --figures build/findings $(ARGS)
	$(BIN)/python -m tools.docs_tables

# Those of papers whose full variant differs from the quick one.
FULL := frindell-2017 hol-blog-2020 loss-map wijnants-2018 http2-http3 incremental-flag sander-2022-fig-4 sander-2022-fig-5 sander-2022-fig-6 sander-2022-fig-7 \
	sander-2022-fig-8 sander-2022-fig-9 sander-2022-reno sander-2022-table-1
.PHONY: findings-full
findings-full: $(DEV) ## do the papers' experiments with all pages and seeds, and write them into docs/generated/full-runs.md (hours); fails as findings does
	@mkdir -p build
	$(BIN)/python -m tools.findings $(FULL) --full --store build/findings.db --markdown docs/generated/full-runs.md $(ARGS)

.PHONY: validate-incremental-paint
validate-incremental-paint: $(READY) ## what EPS's incremental flag is worth in SpeedIndex, by how images are painted (three minutes)
	$(BIN)/python -m validation.incremental_paint $(ARGS)

.PHONY: validate-image-paint
validate-image-paint: $(DEV) ## what Chromium shows of an image that loads, by format, beside h3sim's rules (half a minute; the first table needs Chromium)
	$(BIN)/python -m validation.image_paint $(ARGS)

.PHONY: validate-sander-paint
validate-sander-paint: $(READY) ## what of Sander 2022's changes of SpeedIndex is first paint, and what images that show as they load would change (a minute)
	$(BIN)/python -m validation.sander_paint $(ARGS)

.PHONY: validate-send-buffer
validate-send-buffer: $(DEV) ## readings of the send buffer of Marx 2019 beside Table 2, over the shipped corpus (minutes)
	$(BIN)/python -m validation.send_buffer

.PHONY: validate-shown-order
validate-shown-order: $(READY) ## whether tables show schemes in the order of their ByteIndexes (a minute or two)
	$(BIN)/python -m validation.shown_order

.PHONY: validate-h3sim-1
validate-h3sim-1: $(READY) ## how far scheme h3sim-1 is from the optimum, on pages that made no rule (a minute; ARGS=links: minutes; ARGS=split: the halves)
	$(BIN)/python -m validation.h3sim_1 $(ARGS)

.PHONY: validate-paint-bounds
validate-paint-bounds: $(READY) ## how far the bounds of paints are from what an order can reach (minutes)
	$(BIN)/python -m validation.paint_bounds $(ARGS)

.PHONY: validate-answers
validate-answers: $(DEV) ## the answers of docs/results.md (half an hour; ARGS="robust", "who", "loss", "share" or "rules": one; --store FILE resumes; --other-seeds, --made-up repeat)
	$(BIN)/python -m validation.answers $(ARGS)

.PHONY: validate-paint-rules
validate-paint-rules: $(DEV) ## search again for rules of a client for paint over links, on one half of the sites, and write the scheme of docs/generated/h3sim-1.md (ten minutes)
	$(BIN)/python -m validation.paint_rules

.PHONY: validate-estimates
validate-estimates: $(DEV) ## how often intervals hold where few of the sites change (a minute)
	$(BIN)/python -m validation.estimates

.PHONY: validate-headers
validate-headers: $(DEV) ## header compression beside ls-qpack's ratios and Frindell 2017 (minutes; part of it needs H3SIM_QIF_DIR, see docs/headers.md)
	$(BIN)/python -m validation.headers

.PHONY: record-headers
record-headers: $(READY) ## record the shipped header lists again (a minute; needs Chromium and npm)
	$(BIN)/python -m tools.record_headers

.PHONY: validate-header-blocking
validate-header-blocking: $(READY) ## what header blocking adds to page loads, beside what bodies add (minutes)
	$(BIN)/python -m validation.header_blocking $(ARGS)
