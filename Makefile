# Two commands do everything: `make run` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: run test test-servers lint setup system-packages screenshots bench clean

run: setup
	@$(BIN)/python main.py models fetch default
	@$(BIN)/python main.py

test: setup
	$(BIN)/python -m pytest

test-servers: setup
	BASSLINE_BUILD_SERVERS=1 $(BIN)/python -m pytest -m real_server

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(VENV)/.complete

$(VENV)/.complete: pyproject.toml constraints.txt .ci/system-packages
	@bash .ci/system-packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[app,dev]'
	@touch $@

screenshots: setup
	$(BIN)/python -m tests.app.screenshots docs/screenshots

bench: setup
	$(BIN)/python -m benchmarks.decode

clean:
	rm -rf $(VENV) *.egg-info
