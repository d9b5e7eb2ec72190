"""Computed from the records: pass rates, picks inside a time budget, times to the first pass. No clock, no file."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.picking.records import OURS, PEER, Record, Trial

CAP_S = 60.0  # of restricted means: what a trial without a pass counts, and the most that one with a pass does
BINS = ("none of them", "above 0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "above 0.75")
LOWEST = BINS[1]
_RESAMPLES = 2000


def pass_at(k: int, passed: int, n: int) -> float:
    """Chance that one of ``k`` answers passes, when ``passed`` of ``n`` did; unbiased (Chen et al. 2021, section 2.1).

    Raises ValueError for k above n: that cannot be told without bias.
    """
    if not 1 <= k <= n:
        raise ValueError(f"pass@{k} cannot be estimated from {n} answers")
    return 1.0 - math.comb(n - passed, k) / math.comb(n, k)


def rate(record: Record) -> float:
    """A problem's pass rate, from the answers that nobody timed; the mean of the sides' own rates."""
    return mean(mean(passed) for passed in record.rate.values())


def bin_of(record: Record) -> str:
    """Bins by a rate that owes nothing to the trials that are timed.

    Were a problem put into a bin by the very answers that are timed, a lucky pass would move it up and bad luck down,
    and the lowest bin would hold, by selection, trials that came out late. So the rate comes from answers with other
    seeds. And half of them come from each side, for the sides' weights are not quantised alike: by one side's rate
    alone, a problem that is hard for that side only would count as hard, where the other finds it easy.
    """
    value = rate(record)
    if value == 0:
        return BINS[0]
    return BINS[1 + sum(value > edge for edge in (0.25, 0.5, 0.75))]


def first_within(trial: Trial, budget_s: float) -> bool:
    """Pass@First of the BASS paper: of the answers finished in time, the one with the best mean log-probability."""
    in_time = [o for o in trial.outcomes if o.finished_s <= budget_s and o.mean_logprob is not None]
    return max(in_time, key=lambda o: o.mean_logprob or 0.0).passed if in_time else False


def any_within(trial: Trial, budget_s: float) -> bool:
    """Pass@All of the BASS paper: any of the answers finished in time."""
    return any(outcome.passed for outcome in trial.outcomes if outcome.finished_s <= budget_s)


def curve(trials: Sequence[Trial]) -> list[tuple[float, float]]:
    """(seconds, share of trials with a passing candidate by then), a point for each first pass. Tests included."""
    times = sorted(t.first_pass_s for t in trials if t.first_pass_s is not None)
    return [(seconds, (at + 1) / len(trials)) for at, seconds in enumerate(times)]


def restricted(trial: Trial) -> float:
    """Seconds to the first pass, at most CAP_S; CAP_S where none of the answers passed.

    How long it would have taken then is not known: the time is censored when the last answer is judged. That a side
    gives up sooner must not count for it, so both are charged the same. Where many give up, the ratio nears 1.
    """
    return CAP_S if trial.first_pass_s is None else min(trial.first_pass_s, CAP_S)


def spent(trial: Trial) -> float:
    """Seconds to the first pass, or until the last answer is judged where none passed."""
    return trial.ended_s if trial.first_pass_s is None else trial.first_pass_s


def solved(trial: Trial) -> bool:
    return trial.first_pass_s is not None


@dataclass(frozen=True)
class Versus:
    """One figure of both sides in seconds. ``sooner``: the peer's over ours, above 1 where ours is sooner.

    ``interval``: 95% of ``sooner`` when problems are resampled; None where that says nothing.
    """

    ours: float
    peer: float
    interval: tuple[float, float] | None = None

    @property
    def sooner(self) -> float:
        return self.peer / self.ours


@dataclass(frozen=True)
class Comparison:
    """Pairs of trials (same problem, same turn) of the two sides.

    ``both``: pairs in which both sides passed, and ``medians`` over these, so over the easier ones; None if there is
    none. ``means``: restricted, over all pairs. ``per_pass``: all seconds spent over the number of passes, which is the
    expected time to a first pass of someone who, where none passes, asks again until one does; it needs no cap. None
    where a side never passed.
    """

    tasks: int
    pairs: int
    solved: tuple[float, float]
    both: int
    medians: Versus | None
    means: Versus
    per_pass: Versus | None


_Pair = tuple[Trial, Trial]  # ours and the peer's
_Figure = Callable[[Sequence[Trial]], float]


def compare(records: Sequence[Record], n: int) -> Comparison | None:
    """Ours with ``n`` candidates at once against the peer's one after another; None without pairs."""
    by_task = [list(zip(r.of(OURS, n), r.of(PEER, n), strict=True)) for r in records if r.of(PEER, n)]
    if not by_task:
        return None
    pairs = [pair for found in by_task for pair in found]
    ours, peer = zip(*pairs, strict=True)
    both = [pair for pair in pairs if all(map(solved, pair))]
    return Comparison(
        tasks=len(by_task),
        pairs=len(pairs),
        solved=(mean(map(solved, ours)), mean(map(solved, peer))),
        both=len(both),
        medians=_versus([both], lambda trials: median(map(spent, trials))) if both else None,
        means=_versus(by_task, lambda trials: mean(map(restricted, trials))),
        per_pass=_versus(by_task, per_pass) if any(map(solved, ours)) and any(map(solved, peer)) else None,
    )


def per_pass(trials: Sequence[Trial]) -> float:
    """Seconds spent over passes: the expected time to a pass when one asks again until there is one (renewal)."""
    passes = sum(map(solved, trials))
    return sum(map(spent, trials)) / passes if passes else math.inf


def _versus(by_task: Sequence[Sequence[_Pair]], figure: _Figure) -> Versus:
    ours, peer = _both(by_task, figure)
    return Versus(ours, peer, _interval(by_task, figure) if len(by_task) > 1 else None)


def _both(by_task: Iterable[Sequence[_Pair]], figure: _Figure) -> tuple[float, float]:
    ours, peer = zip(*(pair for pairs in by_task for pair in pairs), strict=True)
    return figure(ours), figure(peer)


def _interval(by_task: Sequence[Sequence[_Pair]], figure: _Figure) -> tuple[float, float] | None:
    """Bootstrap over problems, for turns of one problem are no independent evidence. None if a draw has no passes."""
    draw = random.Random(0)
    drawn = [_both(draw.choices(by_task, k=len(by_task)), figure) for _ in range(_RESAMPLES)]
    if any(math.isinf(value) for pair in drawn for value in pair):
        return None
    ratios = sorted(peer / ours for ours, peer in drawn)
    return ratios[round(0.025 * _RESAMPLES)], ratios[round(0.975 * _RESAMPLES) - 1]
