"""Records that an honest box sends, and every way in which they can be bent."""

import json
from typing import Any

import pytest

from engine.runner.ledger import Ledger, Tampered, plain

KEY, CANARIES = "k", ("c1", "c2")


def record(n: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"n": n, "key": KEY if n else "", "kind": kind, **fields}


def one(name: str, outcome: str = "passed") -> list[dict[str, Any]]:
    return [{"kind": "start", "id": name}, {"kind": "end", "id": name, "outcome": outcome, "why": ""}]


def honest() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"kind": "hello"},
        {"kind": "importing"},
        {"kind": "imported"},
        {"kind": "collected", "ids": ["a", "b"]},
    ]
    events += one("a") + one("b") + one("c1", "failed") + one("c2", "error") + [{"kind": "done"}]
    return events


def entered(events: list[dict[str, Any]], renumber: bool = True) -> Ledger:
    ledger = Ledger(("a", "b"), ("a", "b"), CANARIES, KEY)
    for n, event in enumerate(events):
        ledger.take(json.dumps(record(n, **event) if renumber else event).encode(), float(n))
    return ledger


def test_an_honest_box_is_complete() -> None:
    ledger = entered(honest())
    assert ledger.complete
    assert {name: r.outcome for name, r in ledger.results.items()} == {"a": "passed", "b": "passed"}
    assert ledger.results["a"].seconds == 1.0


def test_tests_that_did_not_load_are_never_complete() -> None:
    ledger = Ledger((), (), (), KEY)
    for n, kind in enumerate(("hello", "importing", "imported", "broken", "done")):
        ledger.take(json.dumps(record(n, kind, why="no such module")).encode(), 0.0)
    assert ledger.stage == "done"
    assert not ledger.complete


def test_what_is_late_counts_for_the_test_that_runs_and_no_other() -> None:
    late = {"kind": "late", "id": "a"}
    begun, (start, end), (following, _) = honest()[:4], one("a"), one("b")
    assert entered([*begun, start, late]).late
    assert not entered([*begun, start, late, end, following]).late
    assert not entered([*begun, start, end, following, late]).late


@pytest.mark.parametrize("what", ["reached", "soft"])
def test_what_one_test_has_seen_is_not_forgotten(what: str) -> None:
    events = honest()
    assert not getattr(entered(events), what)
    events[5][what] = True
    assert getattr(entered(events), what)


@pytest.mark.parametrize("kept", range(len(honest())))
def test_a_box_that_ends_early_is_not_complete(kept: int) -> None:
    assert not entered(honest()[:kept]).complete


@pytest.mark.parametrize("at", range(len(honest())))
def test_no_record_can_be_left_out(at: int) -> None:
    events = honest()
    del events[at]
    try:
        assert not entered(events).complete
    except Tampered:
        pass


@pytest.mark.parametrize("at", range(len(honest())))
def test_no_record_can_come_twice(at: int) -> None:
    events = honest()
    events.insert(at, events[at])
    with pytest.raises(Tampered):
        entered(events)


@pytest.mark.parametrize("canary", [0, 1])
@pytest.mark.parametrize("outcome", ["passed", "skipped", "timeout", "missing"])
def test_a_canary_must_fail(canary: int, outcome: str) -> None:
    events = honest()
    events[9 + 2 * canary]["outcome"] = outcome
    with pytest.raises(Tampered, match="must fail"):
        entered(events)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{" * 65000,
        b"[" * 65000,
        json.dumps(record(1, "importing") | {"key": "wrong"}).encode(),
        json.dumps(record(1, "importing") | {"n": 2}).encode(),
        json.dumps(record(1, "passed")).encode(),
        json.dumps(record(1, "start", id="a")).encode(),
        json.dumps(record(1, "end", id="a", outcome="passed")).encode(),
        json.dumps(record(1, "done")).encode(),
    ],
)
def test_anything_else_on_the_channel_is_tampering(line: bytes) -> None:
    ledger = entered(honest()[:1])
    with pytest.raises(Tampered):
        ledger.take(line, 0.0)


@pytest.mark.parametrize("ids", [[], ["a"], ["b", "a"], ["a", "b", "c"], None])
def test_the_tests_must_be_those_that_were_listed_without_a_candidate(ids: Any) -> None:
    events = honest()
    events[3]["ids"] = ids
    with pytest.raises(Tampered):
        entered(events)


@pytest.mark.parametrize("outcome", ["PASSED", "xpassed", "", None, ["passed"]])
def test_only_known_outcomes_count(outcome: Any) -> None:
    events = honest()
    events[5]["outcome"] = outcome
    with pytest.raises(Tampered):
        entered(events)


def test_a_message_is_shown_as_plain_text() -> None:
    assert (
        plain("a\x1b[31mred\x1b[0m \u202eевил\u202c\u2066b\u2069\u200f\x07\x00\r\n\tend\ud800") == "ared евилb\n\tend"
    )
