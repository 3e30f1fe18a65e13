# Needs python3 (3.11 or later) and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --constraint constraints.txt

# Where byte code is not kept, each process compiles the suite and its tests again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-all faults check docs wheel-check clean

demo: .venv/installed  ## run the quickstart benchmark and print its leaderboard
	$(BIN)/rollcall run quickstart
	$(BIN)/rollcall leaderboard quickstart
	@echo "To use the command rollcall: source .venv/bin/activate"

# Three processes keep two cores busy while tests wait for Ray and for servers. Each takes up to 3 GB.
test: .venv/installed  ## run what a contributor runs: all tests but those marked `full`
	$(BIN)/pytest --numprocesses 3 --dist worksteal -m "not full"

test-all: .venv/installed  ## run all tests: also kills, Ray, every experiment
	$(BIN)/pytest --numprocesses 3 --dist worksteal

faults: .venv/installed  ## run the tests marked `fault`: kills, full disks, damage, alteration and attacks
	$(BIN)/pytest --numprocesses 3 --dist worksteal -m fault

check: .venv/installed  ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/installed-docs  ## build the site in docs/_build/html; a warning or a broken internal link is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --jobs auto --quiet --doctree-dir docs/_build/doctrees docs docs/_build/html

wheel-check: .venv/installed  ## build a wheel, install it elsewhere and use it there
	bash tools/check_wheel.sh $(BIN)/python

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable '.[ray,mlflow,tune,dev]'
	touch $@

.venv/installed-docs: .venv/installed
	$(INSTALL) --editable '.[docs]'
	touch $@

clean:  ## remove the environment and the built site; results in runs/ stay
	rm -rf .venv docs/_build docs/reference/generated
