"""Ragged rows over a shared prompt give the logits of the stock model, row by row."""

import copy

import pytest
import torch

from engine.sampler import cache
from engine.sampler.ragged_model import RaggedModel, is_spread
from tests.engine.sampler.tiny import ARCHITECTURES, VOCABULARY, build


@pytest.fixture(params=["compiled", "torch"], autouse=True)
def attention(request, monkeypatch):
    """Where nothing can be compiled, torch attends."""
    if request.param == "torch":
        monkeypatch.setattr(cache, "is_compiled", lambda *heads: False)


@torch.inference_mode()
def reference(stock, tokens):
    """Logits of one row alone: stock eager attention, no cache."""
    return stock(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


def random_tokens(count, generator):
    return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_uneven_rows_equal_the_stock_model(architecture, packed):
    stock = build(architecture)
    model = RaggedModel(copy.deepcopy(stock), VOCABULARY, packed=packed)
    generator = torch.Generator().manual_seed(1)
    prompt = random_tokens(9, generator)
    torch.testing.assert_close(model.prefill(prompt).logits[0], reference(stock, prompt)[-1], rtol=0, atol=1e-4)

    texts = [list(prompt) for _ in range(4)]
    for counts in ([4, 1, 6, 2], [1, 1, 1, 1], [3, 9, 1, 5], [2, 2, 2, 2]):
        fresh = [random_tokens(count, generator) for count in counts]
        logits = model.forward(fresh, [len(text) for text in texts]).logits
        for text, new, got in zip(texts, fresh, logits.split(counts), strict=True):
            want = reference(stock, text + new)[len(text) :]
            torch.testing.assert_close(got, want, rtol=0, atol=1e-4)
            text += new[: max(1, len(new) - 2)]  # the rest is rejected: its slots are written over


def test_rows_leave_and_the_others_stay_what_they_were():
    stock = build()
    model = RaggedModel(copy.deepcopy(stock), VOCABULARY)
    generator = torch.Generator().manual_seed(2)
    prompt = random_tokens(5, generator)
    model.prefill(prompt)
    fresh = [random_tokens(3, generator) for _ in range(4)]
    model.forward(fresh, [5] * 4)
    model.keep([3, 1])
    more = [random_tokens(2, generator) for _ in range(2)]
    got = model.forward(more, [8, 8], last_only=True).logits
    for row, kept in enumerate([3, 1]):
        want = reference(stock, prompt + fresh[kept] + more[row])[-1]
        torch.testing.assert_close(got[row], want, rtol=0, atol=1e-4)


def test_a_long_prompt_is_read_in_chunks_and_can_be_stopped(monkeypatch):
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 7)
    stock = build()
    model = RaggedModel(copy.deepcopy(stock), VOCABULARY)
    prompt = random_tokens(20, torch.Generator().manual_seed(3))
    seen = []
    logits = model.prefill(prompt, lambda done: seen.append(done) or True).logits
    assert seen == [7, 14, 20]
    torch.testing.assert_close(logits[0], reference(stock, prompt)[-1], rtol=0, atol=1e-4)
    assert model.prefill(prompt, lambda done: done < 14) is None


def test_padding_ids_of_the_output_layer_are_cut_off():
    model = RaggedModel(build(), VOCABULARY - 5)
    assert model.prefill([3, 4, 5]).logits.shape == (1, VOCABULARY - 5)


def test_a_model_spread_over_devices_is_indexed_from_the_host():
    """What can be seen of it without two GPUs: the same logits, and a map of more than one place is noticed."""
    stock, prompt = build(), [3, 4, 5, 6]
    spread = copy.deepcopy(stock)
    spread.hf_device_map = {"model.layers.0": 0, "model.layers.1": 1}
    models = [RaggedModel(copy.deepcopy(stock), VOCABULARY), RaggedModel(spread, VOCABULARY)]
    assert [is_spread(model.module) for model in models] == [False, True]
    for model in models:
        model.prefill(prompt)
    one, other = (model.forward([[7], [8, 9]], [4, 4]).logits for model in models)
    assert torch.equal(one, other)
