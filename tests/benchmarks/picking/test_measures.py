import math
import random
from itertools import combinations
from statistics import mean

import pytest

from benchmarks.picking.measures import (
    BINS,
    CAP_S,
    any_within,
    bin_of,
    compare,
    curve,
    first_within,
    pass_at,
    per_pass,
    restricted,
)
from benchmarks.picking.records import PEER
from tests.benchmarks.picking.records import outcome, pair, record, trial


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_at_k_is_the_share_of_all_draws_that_hold_a_pass(n):
    for passed in range(n + 1):
        answers = [True] * passed + [False] * (n - passed)
        for k in range(1, n + 1):
            share = mean(any(draw) for draw in combinations(answers, k))
            assert pass_at(k, passed, n) == pytest.approx(share)


def test_pass_at_k_of_fewer_answers_than_k_is_refused():
    with pytest.raises(ValueError, match="pass@4 cannot be estimated from 3"):
        pass_at(4, 1, 3)


@pytest.mark.parametrize(
    ("passed", "peer", "name"),
    [
        (0, 0, "none of them"),
        (1, 0, "above 0 to 0.25"),
        (3, 3, "above 0 to 0.25"),  # 0.25 itself
        (6, 1, "0.25 to 0.5"),
        (12, 0, "0.25 to 0.5"),  # hard for one side only: neither side's rate alone
        (0, 12, "0.25 to 0.5"),
        (8, 8, "0.5 to 0.75"),
        (9, 9, "0.5 to 0.75"),
        (12, 12, "above 0.75"),
    ],
)
def test_a_problem_is_binned_by_both_sides_alike(passed, peer, name):
    assert bin_of(record("a", passed, 12, peer=peer)) == name
    assert name in BINS


def test_what_is_timed_does_not_move_a_problem_to_another_bin():
    lucky = record("a", 1, 12, *pair(1.0, 1.0), peer=2)
    unlucky = record("a", 1, 12, *pair(None, None), peer=2)
    assert bin_of(lucky) == bin_of(unlucky) == "above 0 to 0.25"


def test_picks_inside_a_budget_know_only_what_was_finished_by_then():
    answers = [
        outcome(2.0, "fail", -0.2),
        outcome(4.0, "pass", -0.3),
        outcome(6.0, "pass", -0.1),
        outcome(8.0, "fail", -0.05),
    ]
    timed = trial(4.5, 9.0, "ours", 4, 0, *answers)
    first = {budget: first_within(timed, budget) for budget in (1.0, 2.0, 5.0, 6.0, 8.0)}
    assert first == {1.0: False, 2.0: False, 5.0: False, 6.0: True, 8.0: False}
    every = {budget: any_within(timed, budget) for budget in (1.0, 2.0, 4.0, 8.0)}
    assert every == {1.0: False, 2.0: False, 4.0: True, 8.0: True}


def test_an_answer_without_a_log_probability_is_never_the_first_pick():
    timed = trial(1.0, 2.0, "ours", 2, 0, outcome(1.0, "pass", None), outcome(2.0, "fail", -3.0))
    assert not first_within(timed, 5.0)
    assert any_within(timed, 5.0)


def test_only_a_full_pass_counts():
    assert not any(outcome(1.0, verdict).passed for verdict in ("", "fail", "pass-soft", "tampered", "infra"))
    assert outcome(1.0, "pass").passed


def test_the_curve_ends_at_the_share_that_was_solved():
    assert curve([trial(4.0), trial(None), trial(1.0), trial(9.0)]) == [(1.0, 0.25), (4.0, 0.5), (9.0, 0.75)]
    assert curve([trial(None)]) == []


def test_giving_up_sooner_does_not_count_as_being_sooner():
    assert restricted(trial(None, ended_s=5.0)) == restricted(trial(None, ended_s=50.0)) == CAP_S
    assert restricted(trial(CAP_S + 20, ended_s=CAP_S + 30)) == CAP_S
    assert restricted(trial(3.0)) == 3.0


def test_the_sides_are_compared_pair_by_pair():
    records = [
        record("a", 2, 12, *pair(2.0, 6.0), *pair(4.0, None, turn=1), peer=1),
        record("b", 1, 12, *pair(4.0, 4.0), peer=1),
        record("c", 1, 12, *pair(None, 9.0), peer=1),
    ]
    found = compare(records, 8)
    assert (found.tasks, found.pairs, found.both) == (3, 4, 2)
    assert found.solved == (0.75, 0.75)
    assert (found.medians.ours, found.medians.peer) == (3.0, 5.0)
    assert found.medians.sooner == pytest.approx(5 / 3)
    assert (found.means.ours, found.means.peer) == ((2 + 4 + 4 + CAP_S) / 4, (6 + CAP_S + 4 + 9) / 4)
    # Three passes in 2 + 4 + 4 seconds and the 10 after which the fourth gave up; 30 for the peer.
    assert (found.per_pass.ours, found.per_pass.peer) == (pytest.approx(20 / 3), pytest.approx(49 / 3))


def test_there_is_nothing_to_compare_without_a_peer_or_without_a_pass():
    assert compare([record("a", 2, 12, trial(1.0))], 8) is None
    assert compare([], 8) is None
    found = compare([record("a", 2, 12, *pair(None, 3.0), peer=0)], 8)
    assert found.medians is None
    assert found.per_pass is None
    assert found.means.interval is None  # of one problem there is nothing to draw


def test_seconds_per_pass_are_what_asking_again_takes():
    """Against playing it: batches that take a second an answer, tried again until one passes."""
    draw = random.Random(1)

    def batch() -> float | None:
        return next((at for at in range(1, 9) if draw.random() < 0.15), None)

    trials = [trial(batch(), ended_s=8.0) for _ in range(4000)]
    until_pass = []
    for _ in range(4000):
        seconds = 0.0
        while (passed_at := batch()) is None:
            seconds += 8.0
        until_pass.append(seconds + passed_at)
    assert per_pass(trials) == pytest.approx(mean(until_pass), rel=0.06)
    assert mean(until_pass) == pytest.approx(1 / 0.15, rel=0.05)


def test_the_interval_holds_the_ratio_and_widens_with_the_spread():
    alike = [record(str(i), 1, 12, *pair(2.0 + i / 10, 2 * (2.0 + i / 10)), peer=1) for i in range(12)]
    found = compare(alike, 8).means
    assert found.interval == (pytest.approx(2.0), pytest.approx(2.0))
    spread = [record(str(i), 1, 12, *pair(4.0, 4.0 + 2 * (i % 5)), peer=1) for i in range(12)]
    low, high = compare(spread, 8).means.interval or (0.0, 0.0)
    assert low < compare(spread, 8).means.sooner < high
    assert high - low > 0.1


def test_turns_of_one_problem_are_drawn_together():
    """Ten turns of two problems are no twenty independent pairs."""
    turns = [pair(2.0, 2.0 if task == "a" else 20.0, turn=turn) for task in "ab" for turn in range(10)]
    together = [
        record("a", 1, 12, *(t for made in turns[:10] for t in made), peer=1),
        record("b", 1, 12, *(t for made in turns[10:] for t in made), peer=1),
    ]
    apart = [record(str(at), 1, 12, *made, peer=1) for at, made in enumerate(turns)]
    wide, narrow = (compare(records, 8).means.interval for records in (together, apart))
    assert wide == (pytest.approx(1.0), pytest.approx(10.0))
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_a_draw_without_a_pass_leaves_no_interval():
    records = [record("a", 1, 12, *pair(2.0, 4.0), peer=1), record("b", 1, 12, *pair(None, None), peer=1)]
    found = compare(records, 8)
    assert found.per_pass.interval is None
    assert not math.isinf(found.per_pass.ours)


def test_a_peer_that_lacks_a_turn_is_noticed():
    with pytest.raises(ValueError, match="zip"):
        compare([record("a", 1, 12, trial(1.0), trial(1.0, turn=1), trial(2.0, side=PEER), peer=1)], 8)
