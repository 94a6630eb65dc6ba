# Needs Python 3.10 or later, git and make; everything else goes into .venv. `make` alone lists the targets.

PYTHON ?= python3
JOBS ?= 2
PYTEST_OPTIONS ?=
BENCH_OPTIONS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest $(PYTEST_OPTIONS)
# Compiled modules are kept, whatever the environment says: the tests start the program some thousand times.
export PYTHONDONTWRITEBYTECODE :=

# Released packages are fetched once, into this folder if it is set, else into the user's cache folder.
ifdef UKY_PATCH_CACHE
export UKY_PATCH_CACHE
endif

.PHONY: help venv demo golden test test-matrix test-crash runtime test-runtime test-ux test-hosts lint format docs docs-sessions docs-matrix docs-runtime bench bench-accuracy bench-diagnosis bench-injected bench-zero-day bench-self-control forks clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(READY)  ## Make .venv; again when pyproject.toml has changed

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed; name one with make PYTHON=...")'
	@rm -f $@
	@if uv --version >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV) && \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable . --group dev; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --editable . --group dev; \
	fi
	@$(BIN)/python -m compileall -q patcher
	@touch $@

demo: $(READY)  ## The whole round on a real verl release, in a scratch folder
	@$(BIN)/uky-patch demo

# Its tests mostly wait for hosts and programs.
test: JOBS = 6
test: $(READY)  ## All tests but the slow lanes
	$(PYTEST) -n $(JOBS) -m 'not slow and not hosts and not runtime and not ux'

test-matrix: $(READY)  ## The slow lane: every verl release on every vLLM release, and on disturbed trees
	$(PYTEST) -n $(JOBS) --dist loadgroup --timeout 1500 -m slow

test-crash: $(READY)  ## All crashes and races alone; `make test` runs some of them, the slow lane the rest
	$(PYTEST) -n $(JOBS) tests/tree/test_crash.py tests/tree/test_race.py

runtime: $(READY)  ## Environments with real vLLM, torch and Ray on a CPU, for test-runtime and test-hosts; minutes and 4.5 GB, once
	@$(BIN)/python -m tests.runtime.environment

test-runtime: $(READY)  ## Real verl on a real vLLM for the CPU: imports, findings executed, a server that answers, a training step
	$(PYTEST) -n $(JOBS) --timeout 900 --dist loadscope -m runtime

test-ux: $(READY)  ## Every command in terminals of tmux, against the screens in tests/ux/golden; UPDATE=1 writes them anew
	$(if $(UPDATE),UPDATE=1) $(PYTEST) -n $(JOBS) --dist loadgroup -m ux

golden: $(READY)  ## What commands print and plans write, against tests/golden/outputs; UPDATE=1 writes them anew
	@$(BIN)/python -m tests.golden $(if $(UPDATE),--write,--check) --jobs $(JOBS)

test-hosts: $(READY)  ## Migrations to real hosts: end to end, in network namespaces, with every fault; as root
	$(PYTEST) -n $(JOBS) --dist loadgroup -m hosts

lint: $(READY)  ## ruff, mypy, imports that point down and form no circle, and no module above 500 lines without a reason
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy -p bench
	$(BIN)/lint-imports
	$(BIN)/python -m bench.module_length

format: $(READY)  ## Put the code in order
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: $(READY)  ## Render MIGRATION.md, docs/symptoms.md, docs/quick-fixes.md and their Chinese twins, the picture of the rooms, and the schemas
	$(BIN)/python -m bench.documents records
	$(BIN)/python -m bench.rooms
	$(BIN)/python -m bench.schemas

docs-sessions: $(READY)  ## The sessions in docs/ and the READMEs' pictures anew, by running their commands; tests compare them; FILES=… for some documents
	$(BIN)/python -m tests.transcripts --write $(FILES)

docs-matrix: $(READY)  ## docs/matrix.md and its Chinese twin, from all releases; fetches them and takes minutes
	$(BIN)/python -m bench.documents matrix

docs-runtime: $(READY)  ## The tables of docs/runtime.md and its Chinese twin, by running verl's releases on the runtime environments
	$(BIN)/python -m tests.runtime.lane

bench: $(READY)  ## Figures against their limits, as ratios within one run
	@$(BIN)/python -m compileall -q patcher
	@$(BIN)/python -m bench $(BENCH_OPTIONS)

bench-accuracy: $(READY)  ## Precision and recall of `check` and other tools on labels made by execution
	@$(BIN)/python -m bench.accuracy $(BENCH_OPTIONS)

bench-diagnosis: $(READY)  ## Root causes, false alarms and lines found by `diagnose` on labelled logs
	@$(BIN)/python -m bench.diagnosis $(BENCH_OPTIONS)

bench-injected: $(READY)  ## Breaks injected into a release, and whether `check` finds each
	@$(BIN)/python -m bench.injected $(BENCH_OPTIONS)

bench-zero-day: $(READY)  ## What drafts repair on the day a vLLM comes out, with the later records hidden; by hand, half an hour
	@$(BIN)/python -m bench.zero_day $(BENCH_OPTIONS)

bench-self-control: $(READY)  ## Whether `check` calls anything missing that is there: make bench-self-control TRAINING=PYTHON
	@test -n "$(TRAINING)" || { echo 'Name the interpreter that trains: make bench-self-control TRAINING=PYTHON' >&2; exit 2; }
	@$(BIN)/python -m bench.self_control --python "$(TRAINING)" $(BENCH_OPTIONS)

forks: $(READY)  ## `check` on clones of public forks: make forks FORKS=DIR; by hand, no lane has the clones
	@test -n "$(FORKS)" || { echo 'Name the folder with the clones: make forks FORKS=DIR' >&2; exit 2; }
	@$(BIN)/python -m bench.forks "$(FORKS)" $(BENCH_OPTIONS)

clean:  ## Remove .venv and what tools left behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
