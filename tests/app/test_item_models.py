"""Rows, words and numbers."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.item_models.badge import badge, in_words
from app.item_models.candidates import CandidateRole, CandidatesModel
from app.item_models.details import details
from app.item_models.rate import Rate, average
from app.item_models.table import Cell, TableModel
from engine.contract import CandidateFinished, Request, RunStarted, TextAdded
from engine.contract.states import CandidateState
from engine.runner.report import Report, TestResult
from engine.selection.grouping import Likeness
from engine.session.candidate import Candidate
from engine.session.run import Run


def run_of(count: int) -> Run:
    return Run("r", Request("p", 1, candidates=count))


def test_candidates_model_keeps_the_rules(qtmodeltester: ModelTester) -> None:
    run, model = run_of(3), CandidatesModel()
    qtmodeltester.check(model)
    model.show(run)
    qtmodeltester.check(model)
    run.apply(RunStarted("r", 3, (1, 2, 3, 4, 5), 1))
    model.flush()  # more candidates were added to a run that goes on
    assert [model.index(row).data(Qt.ItemDataRole.UserRole + 1) for row in range(5)] == [1, 2, 3, 4, 5]
    qtmodeltester.check(model)
    model.show(None)
    assert model.rowCount() == 0


def test_table_model_keeps_the_rules(qtmodeltester: ModelTester) -> None:
    model = TableModel(("a", "b"))
    qtmodeltester.check(model)
    model.show([(Cell("1"), Cell("2", "passed", "passed")), (Cell("3"), Cell("4"))])
    qtmodeltester.check(model)
    assert model.index(1, 1).data() == "4"
    assert model.headerData(1, Qt.Orientation.Horizontal) == "b"


@pytest.mark.parametrize(
    ("candidate", "word", "icon"),
    [
        (Candidate(1, 1), "queued", "queued"),
        (Candidate(1, 1, "running"), "running", "running"),
        (Candidate(1, 1, "done"), "finished", "done"),
        (Candidate(1, 1, "cut"), "cut off", "cut"),
        (Candidate(1, 1, "stopped"), "stopped", "stopped"),
        (Candidate(1, 1, "failed"), "failed", "failed"),
        (Candidate(1, 1, "done", test_state="running", tests_done=2, tests_total=5), "testing 2/5", "tests-running"),
        (Candidate(1, 1, "done", test_state="timed out"), "timed out", "tests-error"),
    ],
)
def test_a_state_is_a_word_and_a_shape(candidate: Candidate, word: str, icon: str) -> None:
    shown = badge(candidate, None)
    assert (shown.word, shown.icon) == (word, icon)


def test_an_unconfirmed_pass_is_not_a_pass() -> None:
    results = (TestResult("a", "passed"), TestResult("b", "passed"))
    firm = Candidate(1, 1, "done", test_state="passed", report=Report("pass", "split", tests=results))
    soft = Candidate(
        2, 1, "done", test_state="passed by its own ==", report=Report("pass-soft", "split", tests=results)
    )
    assert badge(firm, None).word == "passed 2/2"
    assert badge(soft, None).word == "unconfirmed"
    assert badge(firm, None).icon != badge(soft, None).icon
    assert in_words(firm, 61.4) == "Candidate 1, finished, 0 tokens, 61 tokens per second, tests passed 2 of 2"
    assert in_words(soft, None) == "Candidate 2, finished, 0 tokens, tests unconfirmed 2 of 2"


def test_rate_is_over_two_seconds_of_the_engines_clock() -> None:
    rate = Rate()
    assert rate.per_second is None
    for tenth in range(51):  # 10 a second for 3 s, then 40 a second
        rate.add(tenth / 10, tenth if tenth <= 30 else 30 + (tenth - 30) * 4)
        if tenth == 30:
            assert rate.per_second == pytest.approx(10)
    assert rate.per_second == pytest.approx(40)


def test_average_is_from_the_first_token_to_the_end() -> None:
    assert average(101, 1.0, 3.0) == pytest.approx(50)
    assert average(1, 1.0, 3.0) is None
    assert average(10, None, 3.0) is None


def test_speed_on_the_tab_comes_from_the_engines_clock() -> None:
    run, model = run_of(2), CandidatesModel()
    model.show(run)
    for step in range(1, 12):
        run.apply(TextAdded("r", 1, "x", 4 * step, step / 10))
        model.begin(1, step / 10, 4 * step)
        if step % 5 == 0:
            model.take_speeds(step / 10)
    model.flush()
    assert [shown.note for row in range(2) if (shown := model.badge(row))] == ["40 tok/s", ""]


def test_a_candidate_that_looks_no_different_is_not_painted(qtbot: QtBot) -> None:
    run, model = run_of(4), CandidatesModel()
    model.show(run)
    painted: list[tuple[int, int]] = []
    model.dataChanged.connect(lambda first, last: painted.append((first.row(), last.row())))
    for number in (1, 2, 4):
        run.apply(TextAdded("r", number, "x", 1, 0.1))
        model.begin(number, 0.1, 1)  # running now
    assert [model.data(model.index(row), CandidateRole.WORD) for row in range(4)] == [
        "queued"
    ] * 4  # as the views know them
    model.flush()
    assert [model.data(model.index(row), CandidateRole.WORD) for row in range(4)] == [
        "running",
        "running",
        "queued",
        "running",
    ]
    run.apply(TextAdded("r", 1, "y", 2, 0.2))
    model.begin(1, 0.2, 2)
    model.touch_all()
    model.flush()
    assert painted == [(0, 1), (3, 3)]


def test_details_say_what_is_known() -> None:
    run = run_of(1)
    run.apply(TextAdded("r", 1, "```python\nx = 1\n```", 9, 0.5))
    run.apply(CandidateFinished("r", 1, "cut", "length", "```python\nx = 1\n```", 9, 8, 6, -0.25, 2.5))
    rows = {name.text: value.text for name, value in details(run.candidates[1])}
    assert rows == {
        "State": "cut: reached max tokens",
        "Tests": "not run",
        "Tokens": "9",
        "First token": "after 0.50 s",
        "Finished": "after 2.50 s",
        "Speed": "4.0 tok/s",
        "Drafts accepted": "6 of 8 (75 %)",
        "Mean log-probability": "-0.250",
        "Seed": "1, candidate 1",
        "Code": "python block, 6 characters",
    }


def test_a_tab_counts_what_failed_and_what_passed() -> None:
    outcomes = ("passed", "passed", "failed")
    report = Report("fail", "split", tests=tuple(TestResult(str(n), outcome) for n, outcome in enumerate(outcomes)))
    assert badge(Candidate(1, 1, "done", report=report, test_state="failed"), None).word == "failed 1 of 3"
    report = Report("pass", "split", tests=report.tests[:2])
    assert badge(Candidate(1, 1, "done", report=report, test_state="passed"), None).word == "passed 2/2"


def test_a_tab_names_the_first_of_the_group() -> None:
    alike = Candidate(3, 1, "done", same_as=Likeness(2, "same AST"), group=1)
    assert badge(alike, 9.0).note == "same as 1"


def test_details_say_when_an_answer_has_no_code() -> None:
    candidate = Candidate(1, 1)
    candidate.state = CandidateState.DONE
    candidate.end("Which language?")
    assert ("Code", "none in this answer") in [(name.text, value.text) for name, value in details(candidate)]
