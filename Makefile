# Two commands do everything on a fresh machine with Python 3.11 (or newer), git, g++, make, perl and apt:
#   make demo   compile the example to a bitstream, simulate it, compare it, print the verdicts
#   make test   lint, types and every test (installs Icarus Verilog and Chromium if they are missing)
# make coverage says which lines the tests never reach, and which are left out and why; make mutants, how many mistakes of a sample they find.
# make docs builds the documentation's site in build/site.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= build/digits
MODEL := examples/digits/model.onnx

.PHONY: demo test coverage mutants docs lint types tests tools install install-test install-docs icarus chromium clean

demo: install
	$(BIN)/hwflow synth $(MODEL) --board ulx3s_85f --clock 150 --fps 260000 -o $(OUT)
	$(BIN)/hwflow compare $(MODEL)
	$(BIN)/hwflow sim $(OUT)

# The types are checked beside the first start of the tools: one core each.
test: icarus chromium install-test
	$(MAKE) --jobs=2 lint types tools
	$(MAKE) tests

coverage: icarus chromium install-test
	rm -rf build/coverage
	$(BIN)/hwflow doctor
	$(BIN)/python -m pytest -q -n 3 --dist worksteal --cov --cov-report=term-missing --cov-fail-under=98
	@echo 'Left out, with the reason:'; grep -rn --include='*.py' '# uncovered: ' hwflow hdl_lib

mutants: icarus chromium install-test
	$(BIN)/hwflow doctor
	$(BIN)/python benchmarks/mutants.py --count 200 --least 0.95

# The variable silences what mkdocs-material says of other generators.
docs: install-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

install: $(VENV)/.installed

install-test: $(VENV)/.installed-test

install-docs: $(VENV)/.installed-docs

# Compiled once, all modules, every command starts sooner; on all cores, which pip does not use. What some package has for
# another Python does not compile, and need not.
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check
COMPILE := $(BIN)/python -m compileall -q -j 0 $(VENV)/lib hwflow hdl_lib sim boards || true

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	$(COMPILE)
	touch $@

$(VENV)/.installed-test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "setuptools>=77" wheel
	$(PIP) -e ".[test]"
	$(COMPILE)
	touch $@

$(VENV)/.installed-docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[docs]"
	$(COMPILE)
	touch $@

# Three workers for two cores: one often waits for a process, a line or a lock. Test modules stay compiled, whatever the
# user's Python does elsewhere: each worker rewrites and compiles all of them otherwise, five seconds of its time.
tests: tools
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 3 --dist worksteal

# The tools' first start compiles them (a minute or two); doctor does that once before tests run side by side.
tools:
	$(BIN)/hwflow doctor

lint:
	$(BIN)/ruff check .

types:
	$(BIN)/mypy hwflow hdl_lib sim boards

icarus:
	@command -v iverilog >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  $$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq iverilog; }

# Reports are opened in a browser without a window.
chromium:
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  $$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; }

clean:
	rm -rf build $(VENV) *.egg-info
