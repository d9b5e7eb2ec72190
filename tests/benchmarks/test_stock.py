"""transformers' own ``generate`` as a contender, on a model that is small enough to be nobody's."""

from dataclasses import dataclass

import pytest
import torch

from benchmarks import stock
from engine.contract import Request, Sampling
from tests.engine.sampler.tiny import build, noisy_copy

PROMPT = [5, 9, 5, 9, 5]


@dataclass
class Tiny:
    """The part of a ``LoadedModel`` that is asked for."""

    module: object
    eos_ids = frozenset({2})
    device = torch.device("cpu")

    def encode(self, request):
        return PROMPT


@pytest.fixture
def models(monkeypatch):
    target = build()
    target.generation_config.eos_token_id = target.generation_config.pad_token_id = None
    models = {"target": target, "draft": noisy_copy(target, 0.02)}
    loads = []

    def loaded(name, precision):
        loads.append((name, precision))
        return Tiny(models[name])

    monkeypatch.setattr(stock, "loaded", loaded)
    return loads


def _request(n, temperature=0.8):
    return Request("p", 3, n, sampling=Sampling(temperature, max_tokens=12))


@pytest.mark.parametrize(("n", "temperature"), [(1, 0), (3, 0.8)])
def test_every_answer_is_counted_to_its_end(models, n, temperature):
    timing = stock.Stock("target", "float32").answer(_request(n, temperature))
    assert models == [("target", "float32")]
    assert n <= timing.tokens <= 12 * n
    assert 0 < timing.first_token_s <= timing.total_s


@pytest.mark.parametrize("draft", ["", "draft"])
def test_assisted_generation_says_the_same_at_temperature_0(models, draft, monkeypatch):
    said = []
    put = stock.Clock.put
    monkeypatch.setattr(
        stock.Clock, "put", lambda self, value: (said.append(value.flatten().tolist()), put(self, value))
    )
    plain = stock.Stock("target", "float32").answer(_request(1, 0))
    alone, said[:] = [token for block in said for token in block], []
    assisted = stock.Stock("target", "float32", assisted=True, draft=draft).answer(_request(1, 0))
    assert [token for block in said for token in block] == alone
    assert assisted.tokens == plain.tokens
    assert any(len(block) > 1 for block in said[1:])  # it did guess, and some of it stayed
    assert models[2:] == ([("draft", "float32")] if draft else [])
