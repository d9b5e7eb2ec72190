"""Draft lengths: the paper's golden traces."""

import pytest

from engine.sampler.acceptance import Proposals
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters import Drafter, NoDrafter
from engine.sampler.policies import DraftOutcome, StepTimes
from engine.sampler.policies import open_policy as open_with
from engine.sampler.row import Row
from engine.sampler.stopping import Limits

NO_TIME = StepTimes(0.0, 0.0)


class Drawing(Drafter):
    """Draws, at a price for every token."""

    name, draws = "drawing", True

    def __init__(self, seconds):
        self._seconds = seconds

    def cost(self, rows, budget):
        return self._seconds * max(budget.drawn)

    def propose(self, rows, budget):
        raise NotImplementedError


def open_policy(name, costs=None, drafter=None):
    return open_with(name, CostTable(costs or {1: 1.0}), drafter or NoDrafter())


def lengths_after(best_accepted):
    """Draft lengths that follow when the best row accepts ``best_accepted(l)`` of l, step after step."""
    policy, seen = open_policy("bass"), []
    for best in best_accepted:
        length = policy.budget([None]).drawn[0]
        seen.append(length)
        policy.observe([DraftOutcome(1, length, min(best, length)), DraftOutcome(2, length, 0)], NO_TIME)
    return [*seen, policy.budget([None]).drawn[0]]


def test_always_everything_accepted():
    assert lengths_after([99] * 14) == [7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 32, 32]


def test_never_anything_accepted():
    assert lengths_after([0] * 5) == [7, 6, 4, 2, 1, 1]


def test_a_mixed_run():
    accepted = [7, 9, 11, 4, 4, 4, 4, 4, 4, 0, 0, 0]
    assert lengths_after(accepted) == [7, 9, 11, 13, 11, 8, 6, 4, 6, 5, 3, 1, 1]


def test_a_clipped_proposal_counts_as_what_was_really_offered():
    policy = open_policy("bass")
    policy.observe([DraftOutcome(1, 2, 2), DraftOutcome(2, 0, 0)], NO_TIME)
    assert policy.budget([None]).guesses == [9]
    policy.observe([DraftOutcome(1, 0, 0)], NO_TIME)  # rows that proposed nothing do not count
    assert policy.budget([None]).guesses == [9]


def test_fixed_is_fixed():
    policy = open_policy("fixed:4")
    policy.observe([DraftOutcome(1, 4, 0)], NO_TIME)
    budget = policy.budget([None, None])
    assert budget.guesses == budget.drawn == [4, 4]


# ---------------------------------------------------------------- goodput

FLAT = {1: 1.0, 64: 1.0}  # memory-bound: more tokens cost nothing
STEEP = {1: 1.0, 64: 64.0}  # compute-bound: every token costs the same
KNEE = {1: 1.0, 8: 1.0, 16: 2.0, 64: 8.0}  # flat up to eight tokens


def chosen(costs, survival):
    tokens = [list(range(len(row))) for row in survival]
    return [len(row) for row in open_policy("goodput", costs).prune(Proposals(tokens, survival=survival)).tokens]


def test_goodput_takes_everything_where_tokens_are_free_and_nothing_where_they_do_not_pay():
    survival = [[0.9, 0.5, 0.1], [0.3], []]
    assert chosen(FLAT, survival) == [3, 1, 0]
    assert chosen(STEEP, survival) == [0, 0, 0]


def test_goodput_spends_a_budget_on_the_likeliest_guesses_of_all_rows():
    survival = [[0.9, 0.8, 0.7, 0.6], [0.95, 0.2], [0.5], []]
    assert chosen(KNEE, survival) == [3, 1, 0, 0]  # four rows and four guesses fill the flat part


def rows_of(count):
    return [Row(n, 0, [1], Limits(frozenset(), 99), str) for n in range(1, count + 1)]


def run_goodput(costs, acceptance, draft_seconds, steps=60, n=4):
    """Lengths planned over time when every row's draft model is right with ``acceptance`` in turn."""
    policy, lengths = open_policy("goodput", costs, Drawing(draft_seconds)), []
    for step in range(steps):
        length = policy.budget(rows_of(n)).drawn[0]
        lengths.append(length)
        right = next((k for k in range(length) if (step + k) % 10 >= acceptance * 10), length)
        verify = CostTable(costs).seconds(n * (length + 1))
        policy.observe(
            [DraftOutcome(c, length, right) for c in range(1, n + 1)], StepTimes(length * draft_seconds, verify)
        )
    return lengths


def test_a_draft_model_drafts_far_where_it_is_right_and_cheap():
    assert run_goodput(FLAT, 1.0, 0.01)[-1] >= 8


def test_a_draft_model_that_does_not_pay_is_asked_rarely_but_not_never():
    lengths = run_goodput(STEEP, 0.5, 0.5, steps=400)[50:]
    assert set(lengths) == {0, 1}
    assert 0 < lengths.count(1) < 0.1 * len(lengths)


def test_costs_never_fall_and_one_disturbed_pass_changes_little():
    table = CostTable({1: 1.0, 2: 7.0, 3: 1.5, 4: 2.0})
    assert [table.seconds(size) for size in (1, 2, 3, 4)] == [1.0, 1.5, 1.5, 2.0]
    assert table.seconds(8) == pytest.approx(4.0)  # on along the last slope
    table.refine(4, 20.0)
    assert table.seconds(4) < 2 * 2.6
    for _ in range(200):
        table.refine(4, 3.0)
        table.refine(1, 1.0)
    assert table.seconds(4) == pytest.approx(3.0, rel=0.1)
    assert table.seconds(1) == pytest.approx(1.0, rel=0.1)


def test_what_a_guess_must_promise_to_be_made():
    """Where a line grows for nothing any guess will do; where every token costs one of a plain step, none does."""
    free = open_policy("goodput", {1: 1.0, 64: 1.0})
    dear = open_policy("goodput", {size: float(size) for size in (1, 2, 4, 8, 16, 32, 64)})
    half = open_policy("goodput", {1: 1.0, 3: 2.0, 64: 32.5})
    assert free.least_chance(1) == free.least_chance(8) == 0.0
    assert dear.least_chance(1) == dear.least_chance(8) == pytest.approx(1.0)
    assert half.least_chance(1) == pytest.approx(0.5)
    assert half.budget(rows_of(1)).least_chance == pytest.approx(0.5)
    for name in ("bass", "fixed:3"):
        assert open_policy(name).budget(rows_of(8)).least_chance == 0.0


def test_where_drafts_pay_a_further_guess_must_promise_more():
    """Its place in the line costs time in which more tokens come than without drafts; when they pay no more, less."""
    policy = open_policy("goodput", {1: 1.0, 5: 1.2, 64: 4.15})  # 0.05 of a plain step for each token
    assert policy.least_chance(1) == pytest.approx(0.05)
    good, bad = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], [0.05] * 7
    for _ in range(50):
        taken = policy.prune(Proposals([[1] * 7], survival=[good])).tokens[0]
    assert len(taken) == 7
    assert policy.least_chance(1) == pytest.approx((1 + sum(good)) / 1.35 * 0.05, rel=0.01)
    for _ in range(50):
        policy.prune(Proposals([[1] * 7], survival=[bad]))
    assert policy.least_chance(1) == pytest.approx(0.05)
