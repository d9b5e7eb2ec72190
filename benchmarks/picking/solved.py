"""Shares of problems solved within t seconds, and what one way adds to another, with intervals over problems."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import NormalDist, mean
from typing import Any

from benchmarks.picking.ways import EIGHT, WAYS, Attempt

_Z = NormalDist().inv_cdf(0.975)
_RESAMPLES = 2000
# What is added by what: (the way with it, the way without).
ADDED = {
    "one repair by hand": ("0.5B: eight, then one repair by hand", EIGHT.name),
    "going on": ("0.5B: until one passes, fresh only", EIGHT.name),
    "repair": ("0.5B: until one passes, with repair", "0.5B: until one passes, fresh only"),
    "ladder": ("0.5B: until one passes, then 1.5B", "0.5B: until one passes, with repair"),
    "ours with 0.5B": ("0.5B: until one passes, with repair", "llama.cpp, 0.5B in turn"),
    "ours with 1.5B": ("1.5B: until one passes", "llama.cpp, 1.5B in turn"),
}


def wilson(share: float, n: int) -> tuple[float, float]:
    """95% interval of a share of ``n`` (Wilson 1927)."""
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n)) / (1 + _Z**2 / n)
    return centre - half, centre + half


def figures(attempts: Sequence[Attempt], within: Sequence[float]) -> dict[str, Any]:
    """Everything that is printed."""
    by_way = {way.name: [a for a in attempts if a.way == way.name] for way in WAYS}
    by_way = {name: own for name, own in by_way.items() if own}
    return {
        "ways": {name: _way(own, within) for name, own in by_way.items()},
        "tasks": {name: _by_task(own, max(within)) for name, own in by_way.items()},
        "added": {
            name: {f"{seconds:g}": difference(by_way[with_], by_way[without], seconds) for seconds in within}
            for name, (with_, without) in ADDED.items()
            if with_ in by_way and without in by_way
        },
    }


def _way(attempts: Sequence[Attempt], within: Sequence[float]) -> dict[str, Any]:
    n = len(attempts)
    shares = {f"{seconds:g}": mean(a.within(seconds) for a in attempts) for seconds in within}
    return {
        "attempts": n,
        "shown": mean(a.shown_s is not None for a in attempts),
        "solved": shares,
        "intervals": {seconds: wilson(share, n) for seconds, share in shares.items()},
        "by_arm": Counter(f"{a.arm or 'eight'} {a.model}".strip() for a in attempts if a.shown_s is not None),
    }


def _by_task(attempts: Sequence[Attempt], seconds: float) -> dict[str, str]:
    tasks = dict.fromkeys(a.task for a in attempts)
    counts = {task: [a.within(seconds) for a in attempts if a.task == task] for task in tasks}
    return {task: f"{sum(solved)} of {len(solved)}" for task, solved in counts.items()}


def difference(
    with_: Sequence[Attempt], without: Sequence[Attempt], seconds: float
) -> tuple[float, tuple[float, float], float | None]:
    """Of shares solved within ``seconds``, over what both tried; its 95% interval, problems resampled; the ratio, None
    where the other way solved nothing."""
    other = {(a.task, a.seed): a.within(seconds) for a in without}
    pairs = [(a.within(seconds), other[a.task, a.seed]) for a in with_ if (a.task, a.seed) in other]
    if not pairs:
        return 0.0, (0.0, 0.0), None
    draw = random.Random(0)
    drawn = sorted(_difference(draw.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
    ours, theirs = (sum(solved) for solved in zip(*pairs, strict=True))
    interval = drawn[round(0.025 * _RESAMPLES)], drawn[round(0.975 * _RESAMPLES) - 1]
    return _difference(pairs), interval, ours / theirs if theirs else None


def _difference(pairs: Sequence[tuple[bool, bool]]) -> float:
    return mean(a - b for a, b in pairs)


def print_tables(result: Mapping[str, Any]) -> None:
    """``result`` as it is written to JSON."""
    machine, found = result["machine"], result["figures"]
    print(f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}")
    print(f"load of others at most {result['others_load']:.2f} cores\n")
    seconds = list(next(iter(found["ways"].values()))["solved"])
    _row("way", "attempts", "user's tests pass", *(f"solved within {s} s" for s in seconds), "passed by")
    _row(*["---"] * (4 + len(seconds)))
    for name, way in found["ways"].items():
        shares = (_share(way["solved"][s], way["intervals"][s]) for s in seconds)
        arms = ", ".join(f"{arm}: {count}" for arm, count in way["by_arm"].items())
        _row(name, way["attempts"], f"{way['shown']:.0%}", *shares, arms)
    if found["added"]:
        print("\nWhat each adds, in points of the share solved (95%, problems resampled), and as a ratio:\n")
        _row("what", *(f"within {s} s" for s in seconds))
        _row(*["---"] * (1 + len(seconds)))
        for name, added in found["added"].items():
            _row(name, *(_added(*added[s]) for s in seconds))
    print(f"\nSolved within {seconds[-1]} s, by task:\n")
    for name, tasks in found["tasks"].items():
        failed = ", ".join(f"{task} {count}" for task, count in tasks.items() if not _all(count))
        print(f"- {name}: all but {failed}" if failed else f"- {name}: all")


def _all(count: str) -> bool:
    solved, _, tried = count.partition(" of ")
    return solved == tried


def _share(share: float, interval: Sequence[float]) -> str:
    return f"{share:.1%} ({interval[0]:.0%} to {interval[1]:.0%})"


def _added(points: float, interval: Sequence[float], ratio: float | None) -> str:
    times = f", {ratio:.2f}x" if ratio is not None else ""
    return f"{100 * points:+.1f} ({100 * interval[0]:+.0f} to {100 * interval[1]:+.0f}){times}"


def _row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |")
