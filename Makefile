# Two targets do all the set-up: `make run` and `make test`. ARGS passes arguments to Phoenix.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: run test quick one check pyrefly mypy lint collect structure index schema bench fuzz screenshots snapshots tour sdk-parsers sdk-hosts mcp-servers acp-clients trial litellm llama clean
BESIDE := $(MAKE) --no-print-directory -j 2 -O

# $(call install,EXTRAS,FOLDERS): the packages of pyproject.toml with these extras, compiled on all cores with these folders.
define install
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python $(PYTHON) $(VENV) && uv pip install -q --python $(BIN)/python -e '.[$(1)]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -e '.[$(1)]'; \
	fi
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib phoenix_tui engine tools $(2) || true
endef
comma := ,

$(VENV)/.installed: pyproject.toml
	$(call install,local)
	@touch $@

$(VENV)/.tested: pyproject.toml
	$(call install,local$(comma)test,tests)
	@touch $(VENV)/.installed $@

run: $(VENV)/.installed
	@$(BIN)/phoenix $(ARGS)

test: $(VENV)/.tested
	@$(BESIDE) pyrefly mypy lint collect
	@$(BIN)/pytest -q -n 4 --dist worksteal $(ARGS)

# Between two edits: the files and folders of tests/quick.txt, chosen for what they prove in 25 s on two cores; `make
# test` runs these and all others. Properties are tried with 10 examples in place of 50. The empty variable lets Python
# store what it compiled, or each worker would compile all of it again.
quick: $(VENV)/.tested
	@PYTHONDONTWRITEBYTECODE= HYPOTHESIS_PROFILE=quick $(BIN)/pytest -q -n 2 --dist worksteal @tests/quick.txt $(ARGS)

# make one T=PATH: the tests of one file, one folder, or one test as pytest names it.
one: $(VENV)/.tested
	@$(BIN)/pytest -q $(or $(T),$(error which? make one T=tests/engine/test_codec.py)) $(ARGS)

check: $(VENV)/.tested
	@$(BESIDE) pyrefly mypy lint

pyrefly: $(VENV)/.tested
	@$(BIN)/pyrefly check --summary=none

mypy: $(VENV)/.tested
	@$(BIN)/mypy

lint: $(VENV)/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

# Compiles the tests once, or each of the workers would; the variable keeps Python from storing what it compiled.
collect: $(VENV)/.tested
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq >$(VENV)/.collected || (cat $(VENV)/.collected; false)

# How easily the source is read, in figures to compare before and after a change.
structure: $(VENV)/.tested
	@$(BIN)/python -m tests.structure $(ARGS)

# make index, or make index T=engine/machine: each file with the first sentence of its docstring.
index: $(VENV)/.tested
	@$(BIN)/python -m tests.index $(T)

bench: $(VENV)/.tested
	@$(BIN)/python -m tests.benchmarks $(ARGS)

# make fuzz N=100: random keys, sizes and noise on a slow machine, N scripts over a fake engine and N into the real
# program; the suite plays a few of them. Other seeds each time, or those from FROM on. And each key of each sheet there.
fuzz: $(VENV)/.tested
	@PHOENIX_KEY_FUZZ=$(or $(N),40) PHOENIX_KEY_FUZZ_FROM=$(or $(FROM),$(shell date +%s)) $(BIN)/pytest -q -n 2 tests/phoenix_tui/shell/test_key_fuzz.py tests/journeys/test_random_keys.py tests/journeys/test_every_sheet_in_a_terminal.py $(ARGS)

screenshots: $(VENV)/.tested
	@$(BIN)/python screenshots/make.py $(ARGS)

snapshots: $(VENV)/.tested
	@$(BIN)/python -m tests.snapshots.renew $(ARGS)

tour: $(VENV)/.tested
	@$(BIN)/python screenshots/tour.py $(ARGS)

# Needs the network: both vendors' packages read what `phoenix -p` prints.
sdk-parsers: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.sdk_parsers $(ARGS)

# Needs the network: the official agent SDKs for Python and Node as the hosts of Phoenix. ARGS names scenarios.
sdk-hosts: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.sdk_hosts $(ARGS)

# make trial DIR=FOLDER: skills and hook scripts that others wrote, unchanged; ARGS="--screen": in a terminal too.
trial: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.trial $(or $(DIR),$(error which? make trial DIR=FOLDER)) $(ARGS)

# Needs the network: npm's clients of the Agent Client Protocol drive `phoenix acp`.
acp-clients: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.acp_clients $(ARGS)

# Needs the network: reference MCP servers installed with npm and pip, called by a run. ARGS names servers.
mcp-servers: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.mcp_servers $(ARGS)

# Needs the network: LiteLLM's proxy stands between Phoenix and a scripted upstream. ARGS names scenarios.
litellm: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.litellm_runs $(ARGS)

# ARGS="MODEL.gguf [ROW ...]": llama.cpp's own server runs these weights; some ten minutes on two cores.
llama: $(VENV)/.tested
	@$(BIN)/python -m tests.peers.llama_runs $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
