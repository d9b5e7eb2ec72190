"""One candidate over several boxes: what an earlier box said still counts."""

import asyncio
import json
from typing import Any

import pytest

from engine.runner import checks, forms
from engine.runner.isolation import IsolationCheck
from engine.runner.layers import Layers
from engine.runner.protocol import RunTests
from engine.runner.report import Report
from engine.runner.task import Task
from engine.runner.trial import Plan, Trial, can_fail

IDS = ("a", "b")


class FakeBox:
    """Sends the records of an honest box for those tests that it was asked for, as many as it lives to run."""

    def __init__(
        self, soft: tuple[str, ...], lives_for: int, outcomes: dict[str, str], reached: tuple[str, ...], done: bool
    ):
        self.soft, self.lives_for, self.outcomes, self.reached, self.done = soft, lives_for, outcomes, reached, done
        self.lines: list[bytes] = []
        self.flooded = self.has_run_out_of_memory = False
        self.peak_mib: float | None = None
        self.hangs = False

    def told(self, task: Task, key: str) -> None:
        records: list[dict[str, Any]] = [{"kind": "importing"}, {"kind": "imported"}]
        records.append({"kind": "collected", "ids": list(IDS)})
        for name in task.ids[: self.lives_for]:
            outcome = self.outcomes.get(name, "passed")
            why = checks.NOT_REACHED if outcome == "skipped" else ""
            end = {"kind": "end", "id": name, "outcome": outcome, "why": why}
            records.append({"kind": "start", "id": name})
            if outcome == "hangs":
                self.hangs = True
                break
            records.append(end | {"soft": name in self.soft, "reached": name in self.reached})
        if self.done and not self.hangs and self.lives_for >= len(task.ids):
            records.append({"kind": "done"})
        self.lines = [json.dumps({"n": n, "key": key, **r}).encode() for n, r in enumerate(records, 1)]

    async def read_line(self, seconds: float) -> bytes:
        if not self.lines and self.hangs:
            raise TimeoutError
        return self.lines.pop(0) if self.lines else b""


class FakePair:
    candidate = None
    output, output_bytes, flooded = "", 0, False
    hello = json.dumps({"n": 0, "key": "", "kind": "hello"}).encode()

    def __init__(self, box: FakeBox):
        self.main, self.boxes = box, [box]

    async def give(self, task: Task, key: str, seconds: float) -> None:
        self.main.told(task, key)

    async def end(self) -> None:
        pass


class FakeStore:
    """Gives boxes that end after so many tests, one after another. ``done``: they say so when they are through."""

    def __init__(
        self,
        *lives: int,
        soft: tuple[str, ...] = (),
        reached: tuple[str, ...] = IDS,
        done: bool = True,
        **outcomes: str,
    ):
        self.boxes = [FakeBox(soft, count, outcomes, reached, done) for count in lives]

    async def take(self, layers: Layers, split: bool) -> FakePair:
        return FakePair(self.boxes.pop(0))


TEST = RunTests("1", "", "")
HELD = IsolationCheck(Layers(), False, frozenset())


def plan() -> Plan:
    return Plan(forms.parse("assert f(1)\nassert f(2)\n"), IDS)


def tried(store: FakeStore, patient: bool = True) -> Report:
    trial = Trial(TEST, plan(), HELD, store, lambda result: None, patient)
    return asyncio.run(trial.run())


@pytest.mark.parametrize("soft", IDS)
@pytest.mark.parametrize("lives", [(2,), (1, 1)], ids=["one box", "two boxes"])
def test_a_pass_by_its_own_comparison_is_not_forgotten(soft: str, lives: tuple[int, ...]) -> None:
    assert tried(FakeStore(*lives, soft=(soft,))).verdict == "pass-soft"


@pytest.mark.parametrize("lives", [(2,), (1, 1)], ids=["one box", "two boxes"])
def test_a_pass_in_pieces_is_a_pass(lives: tuple[int, ...]) -> None:
    report = tried(FakeStore(*lives))
    assert (report.verdict, report.why) == ("pass", "")
    assert [test.outcome for test in report.tests] == ["passed", "passed"]


@pytest.mark.parametrize("one", IDS)
def test_a_check_that_one_of_two_boxes_reached_was_reached(one: str) -> None:
    assert tried(FakeStore(1, 1, reached=(one,))).verdict == "pass"


def test_a_box_that_is_gone_before_its_end_proves_no_pass() -> None:
    report = tried(FakeStore(2, done=False))
    assert report.verdict == "fail"
    assert report.why == "The candidate ended the process before its closing checks."


@pytest.mark.parametrize(("patient", "left"), [(True, 0), (False, 1)])
def test_after_a_timeout_the_others_run_where_there_is_patience(patient: bool, left: int) -> None:
    store = FakeStore(2, 2, a="hangs")
    report = tried(store, patient)
    assert [test.outcome for test in report.tests] == ["timeout", "passed" if patient else "timeout"]
    assert (report.verdict, len(store.boxes)) == ("fail", left)


def test_tests_that_have_reached_no_check_are_not_a_pass() -> None:
    report = tried(FakeStore(2, reached=()))
    assert report.verdict == "fail"
    assert report.why == "None of the checks in your tests was reached: that is not a pass."


PROOFS = {
    "the first fails": (FakeStore(2, b="failed"), True),
    "all pass": (FakeStore(2, 2, 2), False),
    "all pass by their own comparison": (FakeStore(2, 2, 2, soft=("a",)), False),
    "no check is reached": (FakeStore(2, 2, 2, reached=()), False),
    "one reaches no check": (FakeStore(2, 2, 2, b="skipped"), False),
    "one breaks": (FakeStore(2, a="error"), True),
}


@pytest.mark.parametrize("name", PROOFS)
def test_tests_can_fail_when_a_candidate_that_does_nothing_fails(name: str) -> None:
    store, proved = PROOFS[name]
    assert asyncio.run(can_fail(TEST, plan(), HELD, store)) is proved


def test_it_is_tried_once() -> None:
    async def twice() -> list[bool]:
        one, store = plan(), FakeStore(2, b="failed")
        return [await can_fail(TEST, one, HELD, store) for _ in range(2)]

    assert asyncio.run(twice()) == [True, True]
