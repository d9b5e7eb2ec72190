"""What a seed means."""

import math

import pytest
import torch

from engine.contract import Sampling
from engine.sampler.acceptance import Coupled, Rejection, counter_of
from engine.sampler.drafters.draft_model import DraftModelDrafter
from kernels.philox import ACCEPT, DRAFT, RESIDUAL, TOKEN
from kernels.philox.torch import uniform
from tests.engine.sampler.running import assemble, decode, new_rows
from tests.engine.sampler.table_model import TableModel

PROMPT = [3, 4, 5]
SIZE = 40


def answers(pairs, temperature, rule="coupled"):
    """Tokens of a row for each (seed, candidate), all in one batch."""
    acceptance = Coupled() if rule == "coupled" else Rejection()
    decoder = assemble(TableModel(SIZE), DraftModelDrafter(TableModel(SIZE, seed=1), acceptance), "fixed:3", acceptance)
    sampling = Sampling(temperature=temperature)
    rows = [new_rows([number], PROMPT, 20, seed, sampling=sampling)[0] for seed, number in pairs]
    decode(decoder, PROMPT, rows)
    return [tuple(row.tokens) for row in rows]


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_the_same_seed_twice(rule):
    pairs = [(seed, 1) for seed in (0, 1, 2**63 - 1)]
    assert answers(pairs, 2.0, rule) == answers(pairs, 2.0, rule)
    twice = answers([*pairs, *pairs], 2.0, rule)
    assert twice[:3] == twice[3:]


@pytest.mark.parametrize("rule", ["coupled", "rejection"])
def test_seeds_and_candidates_differ(rule):
    assert len(set(answers([(seed, 1) for seed in range(50)], 1.0, rule))) > 45  # 0 is a seed like any other
    assert len(set(answers([(7, number) for number in range(1, 51)], 1.0, rule))) > 45


@pytest.mark.parametrize("purpose", [TOKEN, DRAFT, ACCEPT, RESIDUAL])
@pytest.mark.parametrize("seed", [0, 12345, 2**63 - 1])
def test_draws_are_uniform(seed, purpose):
    """Kolmogorov and Smirnov's test over the counters that a run uses: candidates times positions."""
    rows = new_rows(range(1, 33), PROMPT, seed=seed)
    counters = [counter_of(rows, [ahead] * len(rows), torch.device("cpu")) for ahead in range(100)]
    seeds, candidates, positions = (torch.cat(parts) for parts in zip(*counters, strict=True))
    draws = uniform(seeds, candidates, positions, torch.zeros_like(seeds), purpose).double().sort().values
    n = len(draws)
    above = (torch.arange(1, n + 1) / n - draws).max()
    below = (draws - torch.arange(n) / n).max()
    assert max(above, below) < 1.95 / math.sqrt(n)  # 0.1 %
    assert ((draws > 0) & (draws < 1)).all()


def test_draws_of_different_purposes_know_nothing_of_each_other():
    positions = torch.arange(20_000)
    ones = torch.ones_like(positions)
    draws = torch.stack([uniform(ones, ones, positions, 0 * ones, p) for p in (TOKEN, DRAFT, ACCEPT, RESIDUAL)])
    off_diagonal = torch.corrcoef(draws) - torch.eye(4)
    assert off_diagonal.abs().max() < 4 / math.sqrt(20_000)
