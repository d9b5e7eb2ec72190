"""The arithmetic that all contenders' times go through."""

import pytest
import torch

from benchmarks.stock import Clock
from benchmarks.timing import Steps, Timing
from engine.contract import CandidateFinished, Metrics, RunFinished, StepDone

EOS = 9


def test_first_and_last_are_those_that_finish_first_and_last():
    """Not those with the fewest and most milliseconds per token: the last to finish may well have been the fastest."""
    timing = Timing.of(0.5, [(4.5, 100), (1.5, 10), (2.5, 40)])
    assert timing.ms_first == pytest.approx(100.0)
    assert timing.ms_last == pytest.approx(40.0)
    assert timing.ms_mean == pytest.approx((100 + 50 + 40) / 3)
    assert timing.tokens == 150
    assert timing.tokens_per_second == pytest.approx(150 / 4.0)
    assert (timing.first_token_s, timing.total_s) == (0.5, 4.5)


def test_answers_of_one_token_have_no_rate():
    timing = Timing.of(0.5, [(0.5, 1), (0.5, 1)])
    assert timing.tokens_per_second is None
    assert timing.ms_mean == 0


def _step(steps, active, drafted, accepted, at_s):
    return StepDone("r", steps, 0, 0, accepted, active, at_s, drafted)


def _finished(candidate, tokens, at_s):
    return CandidateFinished("r", candidate, "done", "stop", "", tokens, 0, 0, None, at_s)


def test_a_run_of_ours_is_read_off_its_events():
    metrics = Metrics(0.4, 1.4, 2.4, 99.0, 1, 2, 3, 0.75, 3, "cpu", "int8", "suffix", "goodput", "coupled", 0.5, 1.5)
    events = [
        _step(0, 2, 0, 0, 0.4),  # the rows have joined
        _step(1, 2, 6, 4, 0.9),
        _finished(2, 5, 1.4),
        _step(2, 1, 4, 5, 1.4),
        _step(3, 0, 0, 3, 2.4),  # the end was found before what had been accepted
        _finished(1, 8, 2.4),
        RunFinished("r", "finished", metrics),
    ]
    timing = Timing.of_run(events)
    assert (timing.ms_first, timing.ms_last) == (pytest.approx(200.0), pytest.approx(250.0))
    assert timing.tokens_per_second == pytest.approx(13 / 2.0)
    assert (timing.acceptance, timing.draft_length, timing.plain_share) == (0.75, 1.5, 0.5)
    assert timing.steps == Steps(rows=[2, 2, 1], drafted=[6, 4, 0], accepted=[4, 1, 0])


def test_rows_that_join_later_are_no_step():
    events = [_step(0, 1, 0, 0, 0.1), _step(1, 1, 2, 1, 0.2), _step(1, 3, 0, 1, 0.3), _step(2, 3, 3, 2, 0.4)]
    assert Steps.of(events) == Steps(rows=[1, 3], drafted=[2, 3], accepted=[1, 1])


@pytest.fixture
def hand(monkeypatch):
    """A clock that is set by hand."""
    at = [100.0]
    monkeypatch.setattr("benchmarks.stock.time.perf_counter", lambda: at[0])
    return at


def test_the_clock_of_generate_counts_each_row_to_its_own_end(hand):
    clock = Clock(2, frozenset({EOS}))
    hand[0] = 103.0
    clock.put(torch.tensor([[1, 2, 3], [1, 2, 3]]))  # the prompt
    for at, tokens in ((104.0, [5, 6]), (105.0, [7, EOS]), (106.0, [7, EOS]), (108.0, [EOS, EOS])):
        hand[0] = at
        clock.put(torch.tensor(tokens))
    clock.end()
    assert clock.timing() == Timing.of(4.0, [(8.0, 4), (5.0, 2)])


def test_the_clock_of_assisted_generation_counts_every_token_of_a_block(hand):
    clock = Clock(1, frozenset({EOS}))
    clock.put(torch.tensor([[1, 2]]))
    hand[0] = 101.0
    clock.put(torch.tensor([[4, 5, 6]]))
    hand[0] = 102.0
    clock.put(torch.tensor([[7, EOS]]))
    assert clock.timing() == Timing.of(1.0, [(2.0, 5)])
