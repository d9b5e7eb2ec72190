"""The records as JSON and as tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from benchmarks.picking.measures import (
    BINS,
    CAP_S,
    any_within,
    bin_of,
    compare,
    curve,
    first_within,
    pass_at,
    rate,
)
from benchmarks.picking.records import OURS, PEER, Record

KS = (1, 4, 8)


def figures(records: Sequence[Record], counts: Sequence[int], budgets_s: Sequence[float]) -> dict[str, Any]:
    """Everything that is printed, and the curves to draw; ``counts``: candidates per trial of ours."""
    most = max(counts)
    bins = {name: [record for record in records if bin_of(record) == name] for name in BINS}
    return {
        "untimed": {side: _untimed(records, side) for side in (OURS, PEER) if any(side in r.rate for r in records)},
        "budgets": {str(n): _budgets(records, n, budgets_s) for n in counts},
        "verdicts": Counter(o.verdict or "no code" for r in records for trial in r.trials for o in trial.outcomes),
        "bins": {name: _bin(members, most) for name, members in bins.items() if members},
        "all": _bin(records, most),
        "curves": {
            side: points
            for side in (OURS, PEER)
            if (points := curve([trials[0] for record in records if (trials := record.of(side, most))]))
        },
    }


def _untimed(records: Sequence[Record], side: str) -> dict[str, Any]:
    counts = [(sum(record.rate[side]), len(record.rate[side])) for record in records if side in record.rate]
    ks = [k for k in KS if all(k <= n for _, n in counts)]
    return {"answers": min(n for _, n in counts), **{f"pass@{k}": mean(pass_at(k, *c) for c in counts) for k in ks}}


def _budgets(records: Sequence[Record], n: int, budgets_s: Sequence[float]) -> dict[str, Any]:
    """Of the first turn of each problem, so that every problem counts once."""
    trials = [record.of(OURS, n)[0] for record in records]
    passed = [[outcome.passed for outcome in trial.outcomes] for trial in trials]
    return {
        "pass@1": mean(mean(many) for many in passed),
        "pass@n": mean(any(many) for many in passed),
        "within": {
            f"{budget:g}": {
                "first": mean(first_within(trial, budget) for trial in trials),
                "all": mean(any_within(trial, budget) for trial in trials),
            }
            for budget in budgets_s
        },
    }


def _bin(records: Sequence[Record], n: int) -> dict[str, Any]:
    found = compare(records, n)
    return {"tasks": {record.task: round(rate(record), 3) for record in records}, "comparison": found and asdict(found)}


def print_tables(result: Mapping[str, Any]) -> None:
    """``result`` as it is written to JSON."""
    options, machine = result["options"], result["machine"]
    print(f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}")
    for side, ready in result["sides"].items():
        print(f"{side}: {ready['model']}, {ready['precision']} on {ready['device']}. {ready['note']}".rstrip())
    print(
        f"{len(result['records'])} problems of HumanEval, temperature {options['temperature']}, top-p 0.95, at most "
        f"{options['max_tokens']} tokens; {options['repeat']} turn(s) in the bin {BINS[1]}"
    )
    void = f"; VOID: {result['void']} problem(s) were measured on a busy machine" if result["void"] else ""
    print(f"load of others at most {result['others_load']:.2f} cores{void}")
    print(f"timed answers: {', '.join(f'{count} {name}' for name, count in result['figures']['verdicts'].items())}")
    _print_untimed(result["figures"]["untimed"])
    _print_budgets(result["figures"]["budgets"])
    if result["figures"]["all"]["comparison"]:
        _print_bins(result["figures"], max(options["n"]))


def _print_untimed(untimed: Mapping[str, Any]) -> None:
    ks = [name for name in next(iter(untimed.values())) if name.startswith("pass@")]
    print("\nUntimed answers, from which the pass rates come:\n")
    _print_row(["side", "answers per problem", *ks])
    _print_row(["---"] * (2 + len(ks)))
    for side, row in untimed.items():
        _print_row([side, row["answers"], *(f"{row[k]:.1%}" for k in ks)])


def _print_budgets(budgets: Mapping[str, Any]) -> None:
    seconds = list(next(iter(budgets.values()))["within"])
    print("\nOurs, timed: Pass@First / Pass@All inside a budget of so many seconds per problem:\n")
    _print_row(["n", "pass@1", "pass@n", *(f"{budget} s" for budget in seconds)])
    _print_row(["---"] * (3 + len(seconds)))
    for n, row in budgets.items():
        within = (row["within"][budget] for budget in seconds)
        cells = (f"{cell['first']:.0%} / {cell['all']:.0%}" for cell in within)
        _print_row([n, f"{row['pass@1']:.1%}", f"{row['pass@n']:.1%}", *cells])


def _print_bins(found: Mapping[str, Any], n: int) -> None:
    """Where neither side ever passed when nobody timed it, there is no first pass to wait for: it stands apart."""
    print(
        f"\nSeconds to the first candidate that passes, tests included: ours with n = {n} / {PEER} one after another,"
    )
    print(
        f"at most {n}. median: where both passed. mean: no pass, or a later one, counts {CAP_S:.0f} s. per pass: asking"
    )
    print("again until one passes. In brackets, 95% when problems are resampled.\n")
    head = ["pass rate", "problems", "pairs", "solved", "both"]
    head += [cell for name in ("median", "mean", "per pass") for cell in (name, "sooner")]
    _print_row(head)
    _print_row(["---"] * len(head))
    for name, members in [*found["bins"].items(), ("all", found["all"])]:
        if members["comparison"] is not None and name != BINS[0]:
            _print_row(_cells(name, members["comparison"]))
    apart = found["bins"].get(BINS[0])
    if apart is not None:
        ours, peer = apart["comparison"]["solved"]
        print(f"\nNo untimed answer passed: {', '.join(apart['tasks'])}. Solved when timed: {ours:.0%} / {peer:.0%}")


def _cells(name: str, found: Mapping[str, Any]) -> list[object]:
    ours, peer = found["solved"]
    counts = [found["tasks"], found["pairs"], f"{ours:.0%} / {peer:.0%}", found["both"]]
    return [name, *counts, *_versus(found["medians"]), *_versus(found["means"]), *_versus(found["per_pass"])]


def _versus(found: Mapping[str, Any] | None) -> tuple[str, str]:
    """Both sides' seconds, and by what factor ours is sooner."""
    if found is None:
        return "-", "-"
    ours, peer, interval = found["ours"], found["peer"], found["interval"]
    spread = f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else ""
    return f"{ours:.1f} / {peer:.1f}", f"{peer / ours:.2f}x{spread}"


def _print_row(cells: Sequence[object]) -> None:
    print(f"| {' | '.join(map(str, cells))} |")
