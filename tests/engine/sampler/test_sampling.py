"""The truncated distribution against the textbook's full sort, in float64."""

import math

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.row import Row
from engine.sampler.sampling import SamplingPoint, distributions
from engine.sampler.stopping import Limits

VOCABULARY = 151_936  # of the default model


def full_sort(logits, temperature, top_k=0, top_p=1.0, min_p=0.0):
    """Dense probabilities by sorting everything."""
    p = torch.softmax(logits.double() / temperature, -1)
    order = p.argsort(-1, descending=True)
    keep = torch.ones_like(p, dtype=torch.bool)
    if top_k:
        keep = torch.zeros_like(keep).scatter(1, order[:, :top_k], True)
    p = p * keep
    p = p / p.sum(-1, keepdim=True)
    ranked = p.gather(1, order)
    inside = (ranked.cumsum(-1) - ranked < top_p) & (ranked > 0) & (ranked >= min_p * ranked[:, :1])
    keep = torch.zeros_like(keep).scatter(1, order, inside)
    p = p * keep
    return p / p.sum(-1, keepdim=True)


def dense(found, size):
    return torch.zeros(len(found.ids), size, dtype=found.log_probs.dtype).scatter_add(
        1, found.ids, found.log_probs.exp()
    )


def random_logits(rows, size, spread, dtype=torch.float64):
    return torch.randn(rows, size, dtype=dtype, generator=torch.Generator().manual_seed(1)) * spread


CUTS = [
    {},
    {"top_p": 0.95},
    {"top_p": 0.5},
    {"top_k": 7},
    {"top_k": 7, "top_p": 0.6},
    {"top_k": 1, "top_p": 0.9},
    {"top_k": 500, "top_p": 0.99},
    {"min_p": 0.1},
    {"min_p": 1.0},
    {"top_p": 0.9, "min_p": 0.02},
    {"top_k": 300, "top_p": 0.9, "min_p": 0.001},
]


@pytest.mark.parametrize("size", [4, 97, 3000])
@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_equals_the_full_sort(size, cuts, spread):
    logits = random_logits(5, size, spread)
    found = distributions(logits, Sampling(temperature=0.7, **{"top_p": 1.0} | cuts))
    torch.testing.assert_close(dense(found, size), full_sort(logits, 0.7, **cuts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spread", [0.3, 2.0, 6.0], ids=["flat", "middling", "sharp"])
@pytest.mark.parametrize("cuts", [{"top_p": 0.95}, {"top_p": 0.5, "min_p": 1e-4}, {"top_k": 50, "top_p": 0.9}], ids=str)
def test_a_real_vocabulary_in_float32_against_a_float64_sort(cuts, spread):
    logits = random_logits(3, VOCABULARY, spread, torch.float32)
    found = dense(distributions(logits, Sampling(temperature=1.0, **{"top_p": 1.0} | cuts)), VOCABULARY)
    want = full_sort(logits, 1.0, **cuts)
    # Rounding may move the edge of the nucleus by ids that hold a millionth of the mass, and nothing else.
    assert ((found.double() - want).abs().sum(-1) < 1e-5).all()
    assert ((found > 0) ^ (want > 0)).sum() <= 1e-4 * (want > 0).sum()


def test_ties_over_a_real_vocabulary_stay_together():
    """Logits of few distinct values, as low precision gives them: an id stays exactly if its equals do."""
    logits = random_logits(4, VOCABULARY, 2.0, torch.float32).mul(4).round().div(4)
    for cuts in ({"top_p": 0.9}, {"top_p": 0.3}, {"top_k": 100}):
        found = distributions(logits, Sampling(temperature=1.0, **{"top_p": 1.0} | cuts))
        kept = dense(found, VOCABULARY) > 0
        lowest = logits.masked_fill(~kept, torch.inf).min(-1, keepdim=True).values
        assert torch.equal(kept, logits >= lowest)
        # One distinct value less would have been too little.
        more = torch.softmax(logits.double(), -1).masked_fill(logits <= lowest, 0).sum(-1)
        assert (more < cuts.get("top_p", 1)).all()
        assert ((logits > lowest).sum(-1) < cuts.get("top_k", VOCABULARY)).all()


def test_a_position_is_the_same_beside_wider_ones():
    sharp, flat = random_logits(1, 5000, 9.0), random_logits(1, 5000, 0.1)
    sampling = Sampling(temperature=1.0, top_p=0.9)
    alone, beside = distributions(sharp, sampling), distributions(torch.cat([flat, sharp]), sampling)
    torch.testing.assert_close(dense(alone, 5000)[0], dense(beside, 5000)[1], rtol=0, atol=1e-15)
    assert (dense(beside, 5000)[0] > 0).sum() > 1000


def test_temperature_zero_is_the_most_likely_token():
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, -1.0, 0.0]])
    found = distributions(logits, Sampling(temperature=0))
    assert found.ids.tolist() == [[1], [0]]
    assert found.log_probs.exp().tolist() == [[1.0], [1.0]]


def test_each_position_in_its_own_way():
    ways = [
        Sampling(temperature=0.2, top_p=0.9),
        Sampling(temperature=0),
        Sampling(temperature=1.2, top_p=1.0, top_k=5),
        Sampling(temperature=1.0, top_p=1.0),
        Sampling(temperature=2.0, top_p=1.0, min_p=0.3),
    ]
    logits = random_logits(len(ways), 300, 2.0)
    together = dense(distributions(logits, [SamplingPoint(way) for way in ways]), 300)
    alone = torch.cat([dense(distributions(logits[at : at + 1], way), 300) for at, way in enumerate(ways)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-14)


def test_greedy_among_sampled_rows_takes_one_of_equal_ids():
    logits = torch.zeros(2, 200)
    found = distributions(logits, [SamplingPoint(Sampling(temperature=0)), SamplingPoint(Sampling(temperature=1.0))])
    assert (found.log_probs > -torch.inf).sum(-1).tolist()[0] == 1
    assert found.ids[0, 0] == logits[0].argmax()


def test_top_k_of_one_equals_greedy():
    logits = random_logits(20, 97, 2.0)
    found = distributions(logits, Sampling(temperature=1.0, top_k=1, top_p=1.0))
    assert torch.equal(found.ids, distributions(logits, Sampling(temperature=0)).ids)


def test_top_p_never_leaves_the_nucleus():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert distributions(logits, Sampling(temperature=1, top_p=0.5)).ids.tolist() == [[0, 1]]


def test_min_p_on_a_peaked_and_on_a_flat_distribution():
    peaked = random_logits(20, 97, 2.0)
    peaked[range(20), peaked.argmax(-1)] += 1.0
    found = distributions(peaked, Sampling(temperature=1.0, top_p=1.0, min_p=0.9))
    assert torch.equal(found.ids, distributions(peaked, Sampling(temperature=0)).ids)
    flat = torch.tensor([[0.2, 0.18, 0.17, 0.19, 0.26 * 0.5, 0.26 * 0.5]]).log()
    kept = distributions(flat, Sampling(temperature=1.0, top_p=1.0, min_p=0.9))
    assert sorted(kept.ids[0].tolist()) == [0, 1, 3]  # 0.18 is 0.9 of the largest, and stays


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


def row(sampling, prompt, answer):
    made = Row(1, 0, prompt, Limits(frozenset(), 99), lambda ids: "", sampling)
    made.commit(answer, [0.0] * len(answer))
    return made


def test_penalties_by_hand():
    sampling = Sampling(
        temperature=1.0, top_p=1.0, repetition_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.25
    )
    place = row(sampling, prompt=[0, 1], answer=[1, 2, 2]).place(ahead=[2, 3])
    logits = torch.tensor([[4.0, -4.0, 3.0, 1.0, 5.0]], dtype=torch.float64)
    # Of the prompt only: 0. Of prompt and answer: 1, once. In the answer twice and ahead once: 2. Ahead only: 3.
    want = [[2.0, -8.0 - 0.75, 1.5 - 1.25, 0.5 - 0.75, 5.0]]
    found = dense(distributions(logits, [place]), 5)
    torch.testing.assert_close(found, torch.softmax(torch.tensor(want, dtype=torch.float64), -1))
    assert logits[0, 0] == 4.0  # scores are taken from the raw ones


def test_penalties_change_what_greedy_takes():
    greedy = Sampling(temperature=0, repetition_penalty=3.0)
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    assert distributions(logits, [row(greedy, [2], [0]).place()]).ids.tolist() == [[1]]
    assert distributions(logits, [row(greedy, [2], [0]).place([1])]).ids.tolist() == [[0]]


def test_a_draft_is_penalised_as_if_it_had_been_committed():
    """Any place inside a draft gives the very distribution that plain decoding finds there."""
    sampling = Sampling(temperature=0.9, repetition_penalty=1.3, presence_penalty=0.3, frequency_penalty=-0.2)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, 30, (40,), generator=generator).tolist()
    logits = random_logits(1, 40, 2.0)
    for ahead in range(8):
        drafted = row(sampling, tokens[:20], tokens[20 : 40 - ahead]).place(tokens[40 - ahead :])
        committed = row(sampling, tokens[:20], tokens[20:]).place()
        a, b = distributions(logits, [drafted]), distributions(logits, [committed])
        assert torch.equal(a.ids, b.ids)
        assert torch.equal(a.log_probs, b.log_probs)


def test_a_draft_of_a_smaller_vocabulary_is_penalised_for_what_it_knows():
    sampling = Sampling(temperature=1.0, top_p=1.0, presence_penalty=1.0)
    place = row(sampling, [90], [3, 95]).place([91])
    found = dense(distributions(torch.zeros(1, 5), [place]), 5)
    assert found.argmin() == 3


def at_the_edge(min_p, temperature, others, off=0.0):
    """Rows of one likeliest id, ``others`` as likely as min-p allows, rounded, and two far below; of many sizes."""
    largest = torch.linspace(-4, 4, 81, dtype=torch.float64)
    edge = (largest + temperature * math.log(min_p) + off)[:, None].expand(-1, others)
    return torch.cat([largest[:, None], edge, largest[:, None].expand(-1, 2) - 50], dim=1).float()


@pytest.mark.parametrize("others", [1, 3, 100], ids="{} others".format)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("min_p", [0.05, 0.1, 0.3, 0.5])
def test_ids_at_the_very_edge_of_min_p_stay_and_those_beyond_it_go(min_p, temperature, others):
    """Whatever the last bit of a logarithm says; many at once need another way than a few."""
    sampling = Sampling(temperature=temperature, top_p=1.0, min_p=min_p)

    def kept(logits):
        return (distributions(logits, sampling).log_probs > -math.inf).sum(-1).tolist()

    assert kept(at_the_edge(min_p, temperature, others)) == [1 + others] * 81
    assert kept(at_the_edge(min_p, temperature, others, off=-1e-4)) == [1] * 81
