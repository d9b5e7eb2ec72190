# Two commands do everything: `make run` and `make test`. `make check` is the quick part of the tests, with lint.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RESULTS ?= benchmarks/results

# What `make check` asks: no model, no window, no box, no child processes; seconds each.
QUICK := tests/engine/contract tests/engine/selection tests/engine/session tests/engine/doctor tests/engine/server \
         $(wildcard tests/engine/test_*.py) $(addprefix tests/engine/runner/test_,forms.py needs.py ledger.py) \
         $(addprefix tests/engine/sampler/test_,admission.py policies.py sampling.py stopping.py width.py) \
         $(addprefix tests/app/test_cli_,commands.py models.py progress.py)

# What `make test-oldest` asks: whatever knows the insides of transformers.
LOSSLESS := tests/engine/sampler/test_lossless.py
OLDEST := $(addprefix tests/engine/sampler/test_,architectures.py ragged_model.py self_check.py recall.py) \
          $(addprefix $(LOSSLESS)::test_,a_row_that_joins_late_is_the_same a_draft_with_a_smaller_vocabulary \
          mean_log_probability_equals_a_teacher_forced_pass) \
          $(addprefix tests/engine/models/test_,chat.py chat_template.py checkpoint.py ends.py gguf_kinds.py infilling.py \
          kinds.py loaded_model.py loader.py pairing.py shape_readers.py turns.py weight_only.py)

.PHONY: run test check quick-tests test-oldest test-servers test-install lint setup screenshots bench pictures bench-peers \
        bench-picking bench-runner seeded-bugs verdicts clean

run: setup
	@$(BIN)/bassline models fetch default
	@$(BIN)/bassline

test: setup
	$(BIN)/python -m pytest

# Before a commit: lint beside the quick tests, on two cores.
check: setup
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint quick-tests

quick-tests: setup
	$(BIN)/python -m pytest -q -m "not real_model and not real_server and not real_window and not sandbox" $(QUICK)

# The oldest transformers that pyproject.toml allows, beside today's torch.
test-oldest: .venv-oldest/.complete
	.venv-oldest/bin/python -m pytest -q -m "not real_model" $(OLDEST)

.venv-oldest/.complete: pyproject.toml .ci/oldest-environment | setup
	bash .ci/oldest-environment

# The wheel with all its dependencies from the package index, in an environment of its own; minutes and gigabytes.
test-install: setup
	BASSLINE_WHOLE_INSTALL=1 $(BIN)/python -m pytest tests/packaging

test-servers: setup
	BASSLINE_BUILD_SERVERS=1 $(BIN)/python -m pytest -m real_server

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/vocabulary.py
	$(BIN)/codespell

setup: $(VENV)/.complete

$(VENV)/.complete: pyproject.toml setup.py constraints.txt .ci/system-packages
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

# Other programs to compare with, in an environment of their own: llama.cpp, compiled for this very processor and tried.
bench-peers: .venv-peers/.complete

.venv-peers/.complete: | setup
	$(PYTHON) -m venv .venv-peers
	$(BIN)/python -m benchmarks.peers.build .venv-peers/bin/python
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
	rm -rf $(VENV) .venv-oldest *.egg-info build dist
