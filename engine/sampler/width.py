"""How many candidates to decode at a time. All at once is the fastest way to all of them, and a slow way to the first.

Where a step is bound by memory (a GPU) eight rows cost what one costs, and wide wins on both counts. Where it is bound
by arithmetic (a processor) every further row slows all of them down.
"""

from dataclasses import dataclass

from engine.sampler.cost_table import CostTable

PASS_RATES = (0.1, 0.3, 0.5, 0.7, 0.9)  # chances that a candidate is right, each as likely as the others
CLOSE = 1.02  # times the least time: a narrower batch that comes so near finishes its first rows sooner


@dataclass(frozen=True)
class Widths:
    """``first``: candidates decoded at a time until the first wave of them has ended; ``then``: afterwards."""

    first: int
    then: int


def choose_widths(costs: CostTable, candidates: int, goal: str) -> Widths:
    """``goal``: have *all* candidates soonest, or the *first* that is right."""
    then = fastest_width(costs, candidates)
    return Widths(then, then) if goal == "all" else Widths(_soonest_width(costs, candidates, then), then)


def fastest_width(costs: CostTable, candidates: int) -> int:
    """The least width with which (nearly) the least time passes until all are there."""
    # Where none is ever right, the time to the first right one is the time to the last.
    times = {width: _time_to_pass(costs, candidates, width, width, 0.0) for width in range(1, candidates + 1)}
    least = min(times.values())
    return next(width for width, time in times.items() if time <= CLOSE * least)


def _soonest_width(costs: CostTable, candidates: int, then: int) -> int:
    """The width of the first wave that is least late on average, against the best one for each pass rate."""
    delays = dict.fromkeys(range(1, candidates + 1), 0.0)
    for rate in PASS_RATES:
        times = {width: _time_to_pass(costs, candidates, width, then, rate) for width in delays}
        soonest = min(times.values())
        for width, time in times.items():
            delays[width] += time / soonest
    return min(delays, key=lambda width: delays[width])


def _time_to_pass(costs: CostTable, candidates: int, first: int, then: int, rate: float) -> float:
    """Expected seconds per token of answer until a candidate is right, or all are there and none is.

    Answers are taken to be of equal length, so that candidates come in waves.
    """
    left, width, now, expected, none_yet = candidates, first, 0.0, 0.0, 1.0
    while left:
        wave = min(width, left)
        now += costs.seconds(wave)
        none_now = none_yet * (1 - rate) ** wave
        expected += (none_yet - none_now) * now
        none_yet, left, width = none_now, left - wave, then
    return expected + none_yet * now
