"""Which candidate to offer first."""

from collections.abc import Collection
from dataclasses import dataclass

from engine.contract import CandidateState
from engine.runner.report import Report
from engine.runner.verdicts import Verdict
from engine.selection.grouping import behaviour

# No verdict yet is better than a failed one: it may still pass.
_VERDICTS = {
    Verdict.PASS: 4,
    Verdict.PASS_SOFT: 3,
    Verdict.INFRA: 2,
    Verdict.NEEDS_IN_PROCESS: 2,
    Verdict.FAIL: 1,
    Verdict.TAMPERED: 0,
}
_UNTESTED = 2
_STATES = {CandidateState.DONE: 2, CandidateState.CUT: 1, CandidateState.STOPPED: 0, CandidateState.FAILED: 0}


@dataclass(frozen=True)
class RankedCandidate:
    """One candidate that has ended. ``alike``: how many candidates are the same code, itself included.

    ``standing``: what comparing candidates by what they do says of it, see ``engine.elicitation``; larger is better.
    """

    number: int
    state: CandidateState
    alike: int
    mean_logprob: float | None
    report: Report | None = None
    standing: tuple[float, ...] = ()


def rank(entries: Collection[RankedCandidate]) -> list[int]:
    """Numbers, best first.

    Passed tests come first (then more of them), then whether the candidate ended by itself, then what it does on inputs
    (examples of the prompt, suggested tests, how many behave alike), then how many wrote the same code, then how many
    did the same in the tests, then the mean log-probability, then the lower number.
    """
    seen = [behaviour(entry.report) for entry in entries if entry.report and entry.report.tests]

    def key(entry: RankedCandidate) -> tuple[int, int, int, tuple[float, ...], int, int, float, int]:
        report = entry.report
        return (
            _VERDICTS[report.verdict] if report else _UNTESTED,
            report.passed if report else 0,
            _STATES[entry.state],
            entry.standing,
            entry.alike,
            seen.count(behaviour(report)) if report else 0,
            float("-inf") if entry.mean_logprob is None else entry.mean_logprob,
            -entry.number,
        )

    return [entry.number for entry in sorted(entries, key=key, reverse=True)]
