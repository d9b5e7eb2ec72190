"""Training of speculators: what is recorded, what is learned, and what a file is told about itself."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks import hidden_states
from benchmarks.hidden_states import RecordedStates, Recorder, recorded
from benchmarks.speculators import AHEAD, Embeddings, Examples, fresh, loss, packed, reliability, train
from benchmarks.target_models import loaded
from engine.contract import Sampling
from engine.sampler.drafters.speculator import CLASSES, DEPTHS, Speculator
from tests.conftest import SMALL_MODEL
from tests.engine.sampler.running import letters
from tests.engine.sampler.tiny import VOCABULARY, build

PROMPT = [5, 6, 7, 8]


@pytest.fixture(scope="module")
def model():
    tokenizer = SimpleNamespace(convert_ids_to_tokens=lambda ids: [f"t{id}" for id in ids])
    return SimpleNamespace(
        module=build(spread=0.4).requires_grad_(False),
        tokenizer=tokenizer,
        device=torch.device("cpu"),
        precision="float32",
        vocabulary=VOCABULARY,
        eos_ids=frozenset({2}),
        encode=lambda request: [3 + ord(letter) % 90 for letter in request.prompt],
        decode=letters,
    )


def test_each_token_has_the_state_it_was_drawn_in(model):
    made = Recorder(model).answers(PROMPT, 3, Sampling(temperature=0, max_tokens=12))
    assert made.starts.tolist() == [0, len(made.tokens) // 3, 2 * len(made.tokens) // 3]  # greedy: three times the same
    hidden = torch.from_numpy(made.hidden).float()
    assert model.module.lm_head(hidden).argmax(-1).tolist() == made.tokens.tolist()


def test_answers_that_are_there_are_only_read(model, tmp_path, monkeypatch):
    monkeypatch.setattr(Recorder, "prompts", lambda self, each: ["made up"] * each)
    first = list(recorded(model, tmp_path, ["given"], 2, 3))
    assert json.loads((tmp_path / "prompts.json").read_text()) == ["given", "made up", "made up"]
    monkeypatch.setattr(Recorder, "answers", lambda *_: pytest.fail("asked again"))
    again = list(recorded(model, tmp_path, ["given"], 2, 3))
    assert [each.tokens.tolist() for each in again] == [each.tokens.tolist() for each in first]


@pytest.mark.real_model
def test_a_model_makes_up_prompts(small_model_cache, monkeypatch):
    """The model is one of its own: what is recorded from it changes how it attends."""
    monkeypatch.setenv("BASSLINE_HOME", str(small_model_cache))
    monkeypatch.setattr(hidden_states, "BEGINNINGS", ("Write a Python function that",))
    prompts = Recorder(loaded(SMALL_MODEL, "int8", "cpu")).prompts(4)
    assert prompts
    assert all(prompt.startswith("Write a Python function that") for prompt in prompts)


def test_no_example_reaches_into_the_next_answer():
    hidden, tokens = np.zeros((9, 4), np.float16), np.arange(9, dtype=np.int32)
    short = RecordedStates(hidden[:2], tokens[:2], np.array([0], np.int32))
    examples = Examples.of([RecordedStates(hidden, tokens, np.array([0, 5], np.int32)), short], 2)
    assert examples.places.tolist() == [0, 1, 2, 5, 6]
    assert len(examples.tokens) == 11


def test_it_learns(model):
    """To count to twenty, from states that say which number comes."""
    torch.manual_seed(0)
    numbers = np.arange(400, dtype=np.int32) % 20 + 10
    states = 3 * model.module.lm_head.weight[torch.from_numpy(numbers).long()].half().numpy()
    answers = [RecordedStates(states, numbers, np.array([0, 100], np.int32))]
    learned, judges = Examples.of(answers, AHEAD), Examples.of(answers, DEPTHS)
    words = Embeddings.of(model, learned, VOCABULARY)
    network = fresh(learned.hidden.shape[1], 64)
    with torch.no_grad():
        before = loss(network, learned, words, learned.places)
    train(network, learned, words, lambda step: step / 200)
    with torch.no_grad():
        assert loss(network, learned, words, learned.places) < 0.9 * before
    right, shares = reliability(network, judges, words)
    assert right.shape == (DEPTHS, CLASSES)
    assert shares[0] > 0.9

    speculator = Speculator(packed(model, network, words, right), model.module)
    places = judges.places
    state = speculator.begin(judges.hidden[places])
    _, guesses = speculator.next(state, judges.tokens[places].tolist(), 0)
    hits = [token == truth for (token, _), truth in zip(guesses, judges.tokens[places + 1].tolist(), strict=True)]
    assert sum(hits) / len(hits) == pytest.approx(shares[0], abs=0.08)  # int8 all but keeps it
