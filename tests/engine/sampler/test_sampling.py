"""The truncated distribution against the textbook's full sort, in float64."""

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.sampling import distributions


def full_sort(logits, temperature, top_k, top_p):
    """Dense probabilities by sorting everything."""
    p = torch.softmax(logits.double() / temperature, -1)
    order = p.argsort(-1, descending=True)
    keep = torch.ones_like(p, dtype=torch.bool)
    if top_k:
        keep = torch.zeros_like(keep).scatter(1, order[:, :top_k], True)
    p = p * keep
    p = p / p.sum(-1, keepdim=True)
    ranked = p.gather(1, order)
    inside = (ranked.cumsum(-1) - ranked < top_p) & (ranked > 0)
    keep = torch.zeros_like(keep).scatter(1, order, inside)
    p = p * keep
    return p / p.sum(-1, keepdim=True)


def dense(found, size):
    return torch.zeros(len(found.ids), size, dtype=found.log_probs.dtype).scatter_add(
        1, found.ids, found.log_probs.exp()
    )


@pytest.mark.parametrize("size", [4, 97, 3000])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (0, 0.95), (0, 0.5), (7, 1.0), (7, 0.6), (1, 0.9), (500, 0.99)])
@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_equals_the_full_sort(size, top_k, top_p, spread):
    logits = torch.randn(5, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * spread
    found = distributions(logits, Sampling(temperature=0.7, top_k=top_k, top_p=top_p))
    torch.testing.assert_close(dense(found, size), full_sort(logits, 0.7, top_k, top_p), rtol=0, atol=1e-12)


def test_temperature_zero_is_the_most_likely_token():
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, -1.0, 0.0]])
    found = distributions(logits, Sampling(temperature=0))
    assert found.ids.tolist() == [[1], [0]]
    assert found.log_probs.exp().tolist() == [[1.0], [1.0]]


def test_top_p_never_leaves_the_nucleus():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert distributions(logits, Sampling(temperature=1, top_p=0.5)).ids.tolist() == [[0, 1]]


def test_ties_at_the_edge_stay_together():
    """Which of two equal ids a partial sort finds first is chance; the distribution must not depend on it."""
    logits = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0] + [-9.0] * 200])
    by_k = distributions(logits, Sampling(temperature=1, top_k=2, top_p=1.0))
    assert sorted(by_k.ids[0].tolist()) == [0, 1, 2, 3]
    flat = distributions(torch.zeros(1, 300), Sampling(temperature=1, top_p=0.2))
    assert flat.ids.shape == (1, 300)


def test_rows_keep_supports_of_different_size():
    logits = torch.tensor([[9.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.9]])
    found = distributions(logits, Sampling(temperature=1, top_p=0.9))
    assert found.log_probs.exp().sum(-1).tolist() == pytest.approx([1, 1])
    assert (found.log_probs[0].exp() > 0).sum() == 1
    assert (found.log_probs[1].exp() > 0).sum() == 4
