"""With drafts and without: what is equal, and how close it was where it is not."""

import json

import pytest
import torch

from benchmarks import exactness
from benchmarks.exactness import Difference, differences, race, table
from engine.contract import Request, Sampling
from engine.sampler.forward_pass import Pass
from kernels.philox import TOKEN
from kernels.philox.torch import gumbel
from tests.benchmarks.recorded import MACHINE

PROMPT = [3, 1, 4]


class OneLogits:
    """A model that says the same behind everything, and notes what it was asked."""

    def __init__(self, logits):
        self.logits, self.read = torch.tensor([logits]), []

    def clear(self):
        pass

    def prefill(self, tokens):
        self.read.append(tokens)
        return Pass(self.logits)


def _request(temperature, top_p=1.0, seed=5):
    return Request("p", seed, 2, sampling=Sampling(temperature, top_p))


def test_the_first_different_token_of_each_candidate_is_found():
    model = OneLogits([1.0, 0.5, 0.0])
    plain, drafted = [[0, 1, 2, 2], [1, 1, 0]], [[0, 1, 2, 2], [1, 0, 2, 2]]
    found = list(differences(model, _request(0), PROMPT, plain, drafted))
    assert [(one.candidate, one.at) for one in found] == [(2, 1)]
    assert model.read == [[3, 1, 4, 1]]  # what stood before it


def test_a_greedy_race_is_between_logits():
    assert race(torch.tensor([[1.0, 0.75, 0.0]]), _request(0), 1, 3, (0, 1)) == (pytest.approx(0.25), False)


def test_a_drawn_race_has_the_noise_of_its_place():
    """Token 0 leads by (1 - 0.5) / 0.5 = 1 before the noise that belongs to this seed, candidate and position."""
    seed, candidate, position = (torch.tensor([[value]]) for value in (5, 2, 9))
    noise = gumbel(seed, candidate, position, torch.tensor([[0, 1]]), TOKEN)[0]
    gap, at_edge = race(torch.tensor([[1.0, 0.5, 0.0]]), _request(0.5), 2, 9, (0, 1))
    assert gap == pytest.approx(abs(1.0 + float(noise[0] - noise[1])), abs=1e-5)
    assert not at_edge


def test_a_token_outside_the_nucleus_is_at_the_edge():
    assert race(torch.tensor([[5.0, 0.0, 0.0]]), _request(1.0, top_p=0.9), 1, 3, (0, 1))[1]


def _case(precision, n, parted, as_alone=True):
    return {
        "precision": precision,
        "temperature": 0.8,
        "n": n,
        "prompt": "roman",
        "drafter": "suffix",
        "tokens": 1000,
        "as_alone": as_alone,
        "differences": [vars(one) for one in parted],
    }


def test_a_row_sums_its_prompts_up():
    parted = [Difference(1, 40, 2e-6, False), Difference(3, 17, 9e-7, False), Difference(4, 80, 3.0, True)]
    cases = [_case("int8", 8, []), _case("float32", 8, parted), _case("float32", 8, [], as_alone=False)]
    options = {"model": "default", "prompts": ["roman"], "max_tokens": 512, "seed": 0, "ahead": 4}
    rows = list(table({"options": options, "machine": MACHINE, "cases": cases}))[-2:]
    assert rows == [
        "| int8 | 0.8 | suffix | 8 | 8 | 1,000 | 100.0% | - | - | 1 of 1 |",
        "| float32 | 0.8 | suffix | 8 | 16 | 2,000 | 81.2% | 17 | 9e-07 to 2e-06, 1 at the edge of top-p | 1 of 2 |",
    ]


@pytest.mark.real_model
def test_int8_answers_of_the_small_model_are_equal_whatever_is_guessed(small_model, tmp_path, capsys):
    out = tmp_path / "exactness.json"
    arguments = ["--model", small_model, "--precision", "int8", "--prompts", "roman", "-n", "3", "--temperature", "0.8"]
    assert exactness.main([*arguments, "--max-tokens", "24", "--json", str(out)]) == 0
    (case,) = json.loads(out.read_text())["cases"]
    assert case["tokens"] > 24
    assert case["as_alone"]
    assert case["differences"] == []
    assert "| int8 | 0.8 | suffix | 3 | 3 |" in capsys.readouterr().out
