"""The order in which candidates are offered: each rule alone, all others equal."""

import random

import pytest

from engine.runner.report import Report, TestResult
from engine.selection.ranking import RankedCandidate, rank


def report(verdict: str, passed: int = 0, failed: int = 0) -> Report:
    outcomes = ["passed"] * passed + ["failed"] * failed
    return Report(verdict, "split", tests=tuple(TestResult(str(n), o) for n, o in enumerate(outcomes)))


def entry(
    number: int, state: str = "done", alike: int = 1, logprob: float | None = -1.0, **more: Report
) -> RankedCandidate:
    return RankedCandidate(number, state, alike, logprob, more.get("report"))


@pytest.mark.parametrize(
    "best_first",
    [
        pytest.param(
            [
                entry(6, report=report("pass", 2)),
                entry(5, report=report("pass-soft", 2)),
                entry(4),
                entry(3, report=report("fail", 1, 1)),
                entry(2, report=report("fail", 0, 2)),
                entry(1, report=report("tampered")),
            ],
            id="verdict, then passed tests",
        ),
        pytest.param([entry(3), entry(2, "cut"), entry(1, "stopped")], id="ended by itself"),
        pytest.param([entry(3, alike=3), entry(2, alike=2, logprob=-0.1), entry(1, logprob=0.0)], id="group size"),
        pytest.param([entry(3, logprob=-0.1), entry(2, logprob=-0.2), entry(1, logprob=None)], id="log-probability"),
        pytest.param([entry(1), entry(2), entry(3)], id="number"),
        pytest.param([entry(2, alike=1), entry(1, "cut", alike=3)], id="ended by itself before group size"),
        pytest.param(
            [
                entry(2, "cut", report=report("needs-in-process")),
                entry(3, "stopped"),
                entry(1, report=report("fail", 1, 1)),
            ],
            id="no verdict yet, for want of consent, is no failure",
        ),
        pytest.param(
            [
                entry(2, alike=2, report=report("infra")),
                entry(3, report=report("needs-in-process")),
                entry(1, report=report("fail", 0, 1)),
            ],
            id="no verdict, for a fault of the machine, is no failure",
        ),
        pytest.param(
            [
                entry(3, report=report("fail", 1, 1)),
                entry(4, report=report("fail", 1, 1), logprob=-2.0),
                entry(1, report=report("fail", 1, 2)),
            ],
            id="same results in the tests",
        ),
    ],
)
def test_order(best_first: list[RankedCandidate]) -> None:
    numbers = [e.number for e in best_first]
    for _ in range(5):
        assert rank(random.sample(best_first, len(best_first))) == numbers


def test_nobody() -> None:
    assert rank([]) == []


def test_what_candidates_do_comes_before_equal_text_and_after_tests() -> None:
    alike = RankedCandidate(1, "done", alike=3, mean_logprob=-0.1, standing=(0.0, 1.0))
    behaving = RankedCandidate(2, "done", alike=1, mean_logprob=-0.9, standing=(0.0, 4.0))
    unseen = RankedCandidate(3, "done", alike=5, mean_logprob=-0.1)
    passed = RankedCandidate(4, "done", alike=1, mean_logprob=-2.0, report=Report("pass", "split"))
    assert rank([alike, behaving, unseen, passed]) == [4, 2, 1, 3]
