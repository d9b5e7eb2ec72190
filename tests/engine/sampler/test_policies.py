"""Draft lengths: the paper's golden traces."""

import pytest

from engine.contract import BadRequest
from engine.sampler.policies import Outcome, open_policy


def lengths_after(best_accepted):
    """Draft lengths that follow when the best row accepts ``best_accepted(l)`` of l, step after step."""
    policy, seen = open_policy("bass"), []
    for best in best_accepted:
        length = policy.plan([None])[0]
        seen.append(length)
        policy.observe([Outcome(length, min(best, length)), Outcome(length, 0)])
    return [*seen, policy.plan([None])[0]]


def test_always_everything_accepted():
    assert lengths_after([99] * 14) == [7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 32, 32]


def test_never_anything_accepted():
    assert lengths_after([0] * 5) == [7, 6, 4, 2, 1, 1]


def test_a_mixed_run():
    accepted = [7, 9, 11, 4, 4, 4, 4, 4, 4, 0, 0, 0]
    assert lengths_after(accepted) == [7, 9, 11, 13, 11, 8, 6, 4, 6, 5, 3, 1, 1]


def test_a_clipped_proposal_counts_as_what_was_really_offered():
    policy = open_policy("bass")
    policy.observe([Outcome(2, 2), Outcome(0, 0)])
    assert policy.plan([None]) == [9]
    policy.observe([Outcome(0, 0)])  # rows that proposed nothing do not count
    assert policy.plan([None]) == [9]


def test_fixed_is_fixed_and_an_unknown_policy_is_refused():
    policy = open_policy("fixed:4")
    policy.observe([Outcome(4, 0)])
    assert policy.plan([None, None]) == [4, 4]
    with pytest.raises(BadRequest, match="goodput"):
        open_policy("goodput")
