"""After a run without a pass the best failing candidate opens on what it failed, unless the user looks elsewhere."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.candidate_page import ANSWER, CODE, DETAILS, TEST_LOG
from engine.runner.protocol import RunTests
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate, from_texts
from engine.session.arms import BATCH
from tests.app.stage import Stage

TESTS = 60
PASSES = {"11": 10, "12": 40, "13": 25}  # what a candidate returns -> tests that it passes before one that fails


def judge(test: RunTests) -> Report:
    good = next((count for value, count in PASSES.items() if f"return {value}" in test.solution), TESTS)
    results = tuple(
        TestResult(f"line {n}", "passed" if n <= good else "failed", "" if n <= good else f"assert f({n}) == 0")
        for n in range(1, TESTS + 1)
    )
    return Report("pass" if good == TESTS else "fail", "split", tests=results, seconds=0.1)


def answers(*values: int) -> Script:
    return Script(tuple(ScriptedCandidate((f"```python\ndef f(n):\n    return {v}\n```",)) for v in values))


@pytest.fixture
def failing(open_stage: Callable[..., Stage]) -> Stage:
    on = open_stage(answers(11, 12, 13), as_finished=True)
    on.judge = judge
    on.write()
    on.window.activateWindow()
    return on


def start(on: Stage, count: int = 3) -> None:
    on.generate(count)
    on.until(lambda: on.controller.situation().running)


def play(on: Stage) -> None:
    on.until(lambda: not on.controller.situation().busy)
    on.settle()


def run(on: Stage, count: int = 3) -> None:
    start(on, count)
    play(on)


def offers(on: Stage) -> dict[str, QPushButton]:
    return {b.text(): b for b in on.window.notice.findChildren(QPushButton) if b.isVisible() and b.text()}


def selected(on: Stage) -> int:
    return on.window.page.log._table.currentIndex().row()


def test_the_best_failing_one_opens_on_its_first_failing_test(failing: Stage) -> None:
    run(failing)
    page = failing.window.page
    assert (page.number, page.way) == (2, TEST_LOG)
    assert selected(failing) == 40
    table = page.log._table
    seen = table.visualRect(page.log._tests.index(40, 0))
    assert table.viewport().rect().contains(seen.center())


@pytest.mark.parametrize("where", ["prompt", "tests", "Generate"])
def test_the_focus_stays_where_it_is(failing: Stage, where: str) -> None:
    window = failing.window
    buttons = {button.text(): button for button in window.bar.findChildren(QPushButton)}
    widgets: dict[str, QWidget] = {"prompt": window.prompt, "tests": window.tests, "Generate": buttons["Run tests"]}
    if where == "tests":
        window.go_to_editor(window.tests)
    widgets[where].setFocus()
    QApplication.processEvents()
    before = QApplication.focusWidget()
    run(failing)
    assert failing.window.page.way == TEST_LOG
    assert QApplication.focusWidget() is before


def choose_by_mouse(on: Stage, qtbot: QtBot) -> None:
    tabs = on.window.page.tabs
    qtbot.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(2).center())


def choose_by_arrow(on: Stage, qtbot: QtBot) -> None:
    on.window.page.tabs.setFocus()
    qtbot.keyClick(on.window.page.tabs, Qt.Key.Key_Right)
    qtbot.keyClick(on.window.page.tabs, Qt.Key.Key_Right)


def choose_by_key(on: Stage, qtbot: QtBot) -> None:
    on.do("candidate_3")


def step(on: Stage, qtbot: QtBot) -> None:
    on.do("previous_candidate")


@pytest.mark.parametrize("how", [choose_by_mouse, choose_by_arrow, choose_by_key, step])
def test_a_candidate_that_the_user_chose_stays(
    failing: Stage, qtbot: QtBot, how: Callable[[Stage, QtBot], None]
) -> None:
    start(failing)
    failing.until(lambda: len(failing.controller.run.candidates) == 3)  # type: ignore[union-attr]
    how(failing, qtbot)
    assert failing.window.page.number == 3
    play(failing)
    assert (failing.window.page.number, failing.window.page.way) == (3, CODE)
    assert "Fix the best 3" in offers(failing)


@pytest.mark.parametrize("way", ["go_to_answer", "go_to_details", "mouse"])
def test_a_view_that_the_user_chose_stays(failing: Stage, qtbot: QtBot, way: str) -> None:
    start(failing)
    if way == "mouse":
        ways = failing.window.page._ways
        qtbot.mouseClick(ways, Qt.MouseButton.LeftButton, pos=ways.tabRect(ANSWER).center())
    else:
        failing.do(way)
    play(failing)
    assert failing.window.page.number == 1
    assert failing.window.page.way == {"go_to_details": DETAILS}.get(way, ANSWER)


def test_what_is_being_read_stays(failing: Stage) -> None:
    start(failing)
    failing.window.page.code.setFocus()
    play(failing)
    assert (failing.window.page.number, failing.window.page.way) == (1, CODE)
    assert failing.window.page.code.hasFocus()


def test_the_next_run_shows_code_again(failing: Stage) -> None:
    run(failing)
    assert failing.window.page.way == TEST_LOG
    start(failing)
    assert failing.window.page.way == CODE
    play(failing)
    assert failing.window.page.way == TEST_LOG


def test_repairs_are_seen_as_they_are_written(failing: Stage) -> None:
    run(failing)
    offers(failing)["Fix the best 3"].click()
    failing.until(lambda: failing.controller.situation().running)
    assert (failing.window.page.number, failing.window.page.way) == (2, CODE)
    play(failing)
    assert len(failing.controller.run.candidates) == 3 + BATCH  # type: ignore[union-attr]
    assert next(iter(offers(failing))) == "Go on until one passes"  # once more, for none of them passed
    assert failing.window.notice.sentence == f"None of the {3 + BATCH} candidates passed the tests."


def test_a_view_chosen_after_it_was_opened_is_kept_in_the_next_run(failing: Stage) -> None:
    run(failing)
    failing.do("go_to_test_log")
    start(failing)
    assert failing.window.page.way == TEST_LOG
    play(failing)


def test_of_a_candidate_that_passes_nothing_is_marked(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(answers(1), as_finished=True)
    on.judge = judge
    on.write()
    run(on, 1)
    assert on.window.page.way == CODE
    on.do("go_to_test_log")
    assert not on.window.page.log._table.selectionModel().hasSelection()
    assert on.window.page.log._table.verticalScrollBar().value() == 0


def test_the_first_failing_test_is_the_first_that_did_not_pass(failing: Stage) -> None:
    run(failing)
    candidate = failing.controller.run.candidates[1]  # type: ignore[union-attr]
    assert candidate.report is not None
    results = tuple(
        replace(test, outcome=outcome)
        for test, outcome in zip(candidate.report.tests, ("passed", "skipped", "timeout", "failed"), strict=False)
    )
    candidate.report = replace(candidate.report, tests=results)
    failing.do("candidate_1")
    assert selected(failing) == 2


def test_run_tests_before_any_has_finished_means_all_of_the_run(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts([f"```python\ndef f(n):\n    return {value}\n```" for value in (11, 12, 13)], chunk=6))
    on.judge = judge
    on.write()
    start(on)
    on.until(lambda: on.controller.run.state == "generating")  # type: ignore[union-attr]
    assert on.window.actions_by_id["run_tests"].isEnabled()
    on.do("run_tests")
    play(on)
    run_ = on.controller.run
    assert run_ is not None
    assert [c.test_state for c in run_.candidates.values()] == ["failed"] * 3
    assert (on.window.page.number, on.window.page.way) == (2, TEST_LOG)
