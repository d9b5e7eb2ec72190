# Two commands do everything: `make run` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RESULTS ?= benchmarks/results

.PHONY: pictures verdicts bench-runner run test test-servers lint setup system-packages screenshots bench bench-peers seeded-bugs clean

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
	@mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.decode -n 1 2 4 8 16 --json $(RESULTS)/decode.json
	$(BIN)/python -m benchmarks.step --json $(RESULTS)/step.json

# Of whatever was measured and is there.
pictures: setup
	$(BIN)/python -m benchmarks.pictures $(RESULTS)/*.json

# Other programs to compare with, in an environment of their own; llama.cpp is compiled for this very processor,
# past pip's cache, which may hold a wheel that was compiled with other flags.
bench-peers: .venv-peers/.complete

.venv-peers/.complete:
	$(PYTHON) -m venv .venv-peers
	CMAKE_ARGS="-DGGML_NATIVE=ON" .venv-peers/bin/pip install --quiet --no-cache-dir --no-binary llama-cpp-python llama-cpp-python
	@touch $@

# Plants known bugs one by one and shows that the tests catch them; some minutes.
seeded-bugs: setup
	$(BIN)/python -m tests.seeded_bugs

# HumanEval's right answers must pass and answers wrong by one token must fail; some minutes.
verdicts: setup
	$(BIN)/python -m benchmarks.humaneval_verdicts

# Forty problems of HumanEval from prompt to verdict, against llama.cpp; up to two hours. --resume goes on after a kill.
bench-picking: setup bench-peers
	$(BIN)/python -m benchmarks.humaneval --peer llama.cpp --repeat 3 --resume --json $(RESULTS)/picking.json

bench-runner: setup
	$(BIN)/python -m benchmarks.runner

clean:
	rm -rf $(VENV) *.egg-info
