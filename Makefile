# Needs python3 (3.11 or later) and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check clean

demo: .venv/installed  ## run the quickstart benchmark and print its leaderboard
	$(BIN)/rollcall run quickstart
	$(BIN)/rollcall leaderboard quickstart

test: .venv/installed  ## run the tests
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

check: .venv/installed  ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:  ## forget the installation; results in runs/ stay
	rm -rf .venv
