"""Every state and verdict has words and an icon, in one table; its value is what history, exports and scripts have."""

import ast
import json
import sqlite3
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from engine.contract import CandidateFinished, CandidateState, RunFinished, RunOutcome, StopReason
from engine.contract.states import ENDED, LEFT_BY, STATE_AFTER
from engine.contract.wire import event_from_line, event_to_line
from engine.runner.report import Report, TestResult
from engine.runner.verdicts import Outcome, Verdict
from engine.session.states import (
    CANDIDATE_STATES,
    OUTCOMES,
    RUN_STATES,
    STATE_OF_VERDICT,
    STOP_REASONS,
    TEST_STATES,
    VERDICTS,
    Display,
    RunState,
    TestState,
    label_of,
)

RESOURCES = Path(__file__).parents[3] / "resources"
TABLES: dict[type[StrEnum], Mapping[Any, Display]] = {
    RunState: RUN_STATES,
    CandidateState: CANDIDATE_STATES,
    TestState: TEST_STATES,
    Verdict: VERDICTS,
    Outcome: OUTCOMES,
}
VALUES = {
    RunState: ["waiting", "reading prompt", "generating", "stopping", "finished", "stopped", "failed"],
    RunOutcome: ["", "finished", "stopped", "budget", "refused", "failed"],
    CandidateState: ["queued", "running", "done", "cut", "stopped", "failed"],
    StopReason: ["", "stop", "length", "budget", "cancelled", "error"],
    TestState: [
        *("not run", "queued", "running", "passed", "passed by its own ==", "failed", "timed out", "killed"),
        *("tampered", "needs consent", "error"),
    ],
    Verdict: ["pass", "pass-soft", "fail", "tampered", "needs-in-process", "infra"],
    Outcome: ["passed", "failed", "error", "timeout", "killed", "skipped", "missing"],
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_state_has_words_and_an_icon(kind: type[StrEnum]) -> None:
    theme = tomllib.loads((RESOURCES / "themes/light.toml").read_text("utf-8"))
    colours = {name for group in theme.values() for name in group}
    assert set(TABLES[kind]) == set(kind)
    for display in TABLES[kind].values():
        assert display.word
        assert (RESOURCES / f"icons/{display.icon}.svg").exists(), display
        assert display.tone in colours, display


def test_every_verdict_has_a_sentence_and_a_state() -> None:
    assert all(display.sentence.endswith((".", "it.")) for display in VERDICTS.values())
    assert set(STATE_OF_VERDICT) == set(Verdict)


def test_an_unconfirmed_pass_has_one_name() -> None:
    shown = TEST_STATES[TestState.PASSED_SOFT]
    assert label_of(TestState.PASSED_SOFT) == shown.word == "unconfirmed"
    assert shown.sentence.startswith("Unconfirmed pass: ")
    others = set(TestState) - {TestState.PASSED_SOFT}
    assert {label_of(state) for state in others} == {state.value for state in others}


def test_every_reason_to_stop_leads_to_a_state() -> None:
    assert set(STATE_AFTER) == set(StopReason) - {StopReason.NONE}
    assert set(STATE_AFTER.values()) == ENDED
    assert set(STOP_REASONS) == set(STATE_AFTER)
    assert set(LEFT_BY) == set(RunOutcome) - {RunOutcome.NONE, RunOutcome.FINISHED}


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_those_of_kept_runs_and_scripts(kind: type[StrEnum]) -> None:
    """Changing one of these breaks histories, exports and whoever reads ``--json``."""
    assert [member.value for member in kind] == VALUES[kind]
    assert json.dumps(list(kind)) == json.dumps(VALUES[kind])
    database = sqlite3.connect(":memory:")
    assert [database.execute("SELECT ?", (member,)).fetchone()[0] for member in kind] == VALUES[kind]
    database.close()


def test_states_come_back_from_a_line_as_what_they_are() -> None:
    ended = CandidateFinished("r", 1, CandidateState.CUT, StopReason.BUDGET, "x", 1, 0, 0, None, 0.5)
    line = event_to_line(ended)
    assert '"state": "cut", "stop_reason": "budget"' in line
    found = event_from_line(line)
    assert found == ended
    assert isinstance(found, CandidateFinished)
    assert (type(found.state), type(found.stop_reason)) == (CandidateState, StopReason)
    over = event_from_line(event_to_line(RunFinished("r", RunOutcome.REFUSED, reason="No.")))
    assert isinstance(over, RunFinished)
    assert type(over.outcome) is RunOutcome


def test_a_report_comes_back_from_the_history_with_its_verdict() -> None:
    report = Report(
        Verdict.PASS_SOFT, "split", tests=(TestResult("a", Outcome.PASSED), TestResult("b", Outcome.SKIPPED))
    )
    kept = json.loads(json.dumps(report.to_dict()))
    assert (kept["verdict"], [test["outcome"] for test in kept["tests"]]) == ("pass-soft", ["passed", "skipped"])
    found = Report.from_dict(kept)
    assert found == report
    assert (type(found.verdict), {type(test.outcome) for test in found.tests}) == (Verdict, {Outcome})


STATES = ("state", "test_state", "verdict", "outcome", "stop_reason")


def compared_with_text(tree: ast.AST) -> Iterator[int]:
    """Lines where a state or a verdict is compared with a string that is written out."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or getattr(node.left, "attr", "") not in STATES:
            continue
        parts = [part for side in node.comparators for part in ast.walk(side)]
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts):
            yield node.lineno


def test_no_state_is_compared_with_a_text() -> None:
    assert list(compared_with_text(ast.parse("x = run.state in ('failed', OVER)\ny = run.state == OVER"))) == [1]
    root = Path(__file__).parents[3]
    files = [file for folder in ("app", "engine", "benchmarks") for file in sorted((root / folder).rglob("*.py"))]
    assert len(files) > 200
    found = {
        str(file.relative_to(root)): list(compared_with_text(ast.parse(file.read_text("utf-8")))) for file in files
    }
    assert {file: lines for file, lines in found.items() if lines} == {}
