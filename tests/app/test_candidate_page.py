"""The candidates in view: strip or list, filters, the best, comparison, tiles."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QListView, QPlainTextEdit, QPushButton
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.item_models.best_reason import best_reason
from app.item_models.candidates import CandidatesModel
from app.item_models.filtered import FILTERS, FilteredCandidates
from app.widgets.candidate_page import COMPARE, MANY, TILES
from engine.contract import CandidateFinished, Request, RunFinished, RunStarted
from engine.runner.report import Report, TestResult
from engine.scripted import from_texts
from engine.session.run import Run
from tests.app.stage import Stage


def finished_run(*texts: str, logprobs: tuple[float, ...] = ()) -> Run:
    count = len(texts)
    run = Run("r", Request("p", 1, candidates=count))
    run.apply(RunStarted("r", 3, tuple(range(1, count + 1)), 1))
    for number, text in enumerate(texts, 1):
        logprob = logprobs[number - 1] if logprobs else -0.1 * number
        run.apply(CandidateFinished("r", number, "done", "stop", text, 4, 0, 0, logprob, 1.0))
    run.apply(RunFinished("r", "finished"))
    return run


def verdict(passed: bool) -> Report:
    outcome = "passed" if passed else "failed"
    return Report("pass" if passed else "fail", "split", tests=(TestResult("a", outcome, "" if passed else "a == b"),))


# The best, and why.


def test_the_only_one_that_passes_is_best_for_that() -> None:
    run = finished_run("a = 1", "b = 2", "c = 3")
    run.change_tests("assert b")
    run.record(1, verdict(False), 1.0)
    run.record(2, verdict(True), 1.0)
    assert (best_reason(run).number, best_reason(run).reason) == (2, "the only one that passed its tests")


def test_among_several_the_larger_group_decides_and_is_named() -> None:
    run = finished_run("a = 1", "b = 2", "b = 2", logprobs=(-0.1, -0.3, -0.2))
    run.change_tests("assert True")
    for number in (1, 2):
        run.record(number, verdict(True), 1.0)
    found = best_reason(run)
    assert found.number == 3
    assert found.reason == (
        "passed its tests, as 2 others did, 2 candidates wrote the same code, mean log-probability -0.20"
    )


def test_without_tests_it_says_so() -> None:
    assert best_reason(finished_run("a = 1", "b = 2")).reason == "not tested, mean log-probability -0.10"
    assert best_reason(Run("r", Request("p", 1))).number == 0


def test_the_best_is_marked_and_can_be_gone_to(on: Stage) -> None:
    assert not on.window.actions_by_id["best"].isEnabled()
    on.generate(6)
    on.finish()
    on.do("run_tests")
    on.settle()
    best = on.window.candidates.best
    assert best == 1
    row = on.window.candidates.row_of(best)
    assert on.window.candidates.badge(row).best
    assert "Best so far: passed its tests" in on.window.page.tabs.tabToolTip(row)
    on.window.page.choose(5)
    on.do("best")
    assert on.window.page.number == best


# The list.


def test_past_ten_candidates_the_strip_is_a_list(on: Stage, qtbot: QtBot) -> None:
    on.generate(MANY)
    on.finish()
    assert on.window.page.tabs.isVisible()
    assert not on.window.page.list.isVisible()
    on.generate(MANY + 1)
    on.finish()
    assert not on.window.page.tabs.isVisible()
    view = on.window.page.list.findChild(QListView)
    assert view is not None
    assert view.model().rowCount() == MANY + 1
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert on.window.page.number == 2
    on.do("next_candidate")
    assert view.currentIndex().row() == 2


def test_the_list_filters(on: Stage) -> None:
    on.generate(12)
    on.finish()
    on.do("run_tests")
    on.settle()
    filter_box, view = on.window.page.list.findChild(QComboBox), on.window.page.list.findChild(QListView)
    assert filter_box is not None
    assert view is not None
    assert [filter_box.itemText(row) for row in range(5)] == [
        "all (12)",
        "passed (6)",
        "failed (6)",
        "distinct (5)",
        "running (0)",
    ]
    filter_box.setCurrentIndex(1)
    assert view.model().rowCount() == 6
    on.window.page.choose(2)  # not in the list: it is shown all the same
    assert on.window.page.number == 2
    assert not view.currentIndex().isValid()
    filter_box.setCurrentIndex(0)
    assert view.model().rowCount() == 12


def test_filtered_candidates_keep_the_rules(qtmodeltester: ModelTester) -> None:
    model = CandidatesModel()
    rows = FilteredCandidates(model)
    qtmodeltester.check(rows)
    run = finished_run("a = 1", "a = 1", "b = 2")
    model.show(run)
    qtmodeltester.check(rows)
    assert rows.counts() == {"all": 3, "passed": 0, "failed": 0, "distinct": 2, "running": 0}
    for name in FILTERS:
        rows.choose(name)
        qtmodeltester.check(rows)
    rows.choose("passed")
    assert rows.rowCount() == 0
    run.change_tests("x")
    run.record(3, verdict(True), 1.0)
    model.touch_all()
    model.flush()
    assert [rows.candidate(rows.index(0, 0)).number] == [3]
    assert not rows.index_of(1).isValid()


# Compare.


@pytest.fixture
def two(open_stage: Callable[..., Stage]) -> Stage:
    """Two answers of sixty lines that differ in two places."""
    lines = [f"line_{n} = {n}" for n in range(60)]
    other = [*lines[:10], "line_10 = 11", *lines[11:50], "extra = 1", *lines[50:]]
    on = open_stage(from_texts(["\n".join(lines), "\n".join(other)], chunk=400))
    on.write()
    on.generate(2)
    on.finish()
    on.do("compare")
    on.settle()
    return on


def test_two_candidates_side_by_side_scroll_together(two: Stage) -> None:
    view = two.window.page.compare
    assert two.window.page.way == COMPARE
    assert view.words == "2 lines differ, 59 are the same"
    assert view.left.document().blockCount() == view.right.document().blockCount() == 61
    view.left.verticalScrollBar().setValue(7)
    assert view.right.verticalScrollBar().value() == 7
    view.right.verticalScrollBar().setValue(3)
    assert view.left.verticalScrollBar().value() == 3


def test_differences_are_marked_by_sign_and_can_be_gone_to(two: Stage) -> None:
    view = two.window.page.compare
    assert [(n, line.mark) for n, line in enumerate(view.left.lines) if line.mark != " "] == [(10, "~"), (50, "")]
    assert [(n, line.mark) for n, line in enumerate(view.right.lines) if line.mark != " "] == [(10, "~"), (50, "+")]
    assert len(view.left.extraSelections()) == 3  # two lines, and in one of them the digit
    after = next(button for button in view.findChildren(QPushButton) if button.text() == "Next difference")
    rows = []
    for _ in range(3):
        after.click()
        rows.append(view.left.textCursor().blockNumber())
    assert rows == [10, 50, 10]


def test_unified_has_both_in_one_column(two: Stage) -> None:
    view = two.window.page.compare
    view.choose_layout("unified")
    assert view.unified.isVisible()
    assert not view.left.isVisible()
    assert view.unified.document().blockCount() == 62
    assert [line.mark for line in view.unified.lines if line.mark != " "] == ["-", "+", "+"]


def test_comparison_follows_the_candidate_in_view(on: Stage) -> None:
    on.generate(4)
    on.finish()
    on.do("compare")
    on.settle()
    view = on.window.page.compare
    assert view.other == on.window.candidates.best or view.other == 2
    view.compare_with(4)
    on.do("candidate_4")
    on.settle()
    assert view.other != 4
    assert on.controller.run is not None
    assert view.left.toPlainText().startswith(on.controller.run.candidates[4].code.split("\n")[0])


def test_texts_too_large_to_compare_are_a_sentence(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x = 1\n" * 40_000, "y = 1\n" * 40_000], chunk=240_000))
    on.write()
    on.generate(2)
    on.finish()
    on.do("compare")
    on.settle()
    assert on.window.page.compare.words.startswith("Too large to compare here")


# Tiles.


def test_tiles_are_live_and_turn_over(on: Stage) -> None:
    on.generate(6)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[2].tokens > 5)
    on.do("tile")
    on.settle()
    tiles = on.window.page.tiles
    assert on.window.page.way == TILES
    assert tiles.shown() == [1, 2]
    assert all(tile.code.toPlainText() for tile in tiles._tiles[:2])
    tiles.show_count(4)
    assert tiles.shown() == [1, 2, 3, 4]
    on.window.page.choose(5)
    on.settle()
    assert tiles.shown() == [5, 6]
    on.finish()
    second = tiles._tiles[1]
    assert on.controller.run is not None
    assert second.code.toPlainText() == on.controller.run.candidates[6].code.rstrip("\r")
    second.findChild(QPushButton).click()
    assert on.window.page.number == 6


def test_views_that_nobody_asked_for_do_not_exist(on: Stage) -> None:
    on.generate(2)
    on.finish()
    assert len(on.window.page.findChildren(QPlainTextEdit)) == 3
    on.do("compare")
    on.do("go_to_code")
    assert len(on.window.page.findChildren(QPlainTextEdit)) == 6


# Details.


def test_details_name_the_group_and_its_rule(on: Stage) -> None:
    on.generate(8)
    on.finish()
    on.window.page.choose(7)
    on.do("go_to_details")
    shown = {row[0].text: row[1].text for row in on.window.page._details._rows}
    assert shown["Seed"] == "1, candidate 7"
    assert shown["Group"] == "candidates 1, 4, 7 wrote the same code"
    assert shown["Similarity"].endswith("as 1")
    assert shown["Drafts accepted"].endswith("(75 %)")
    assert shown["State"] == "done: ended by itself"
    assert {"Tokens", "Mean log-probability", "Temperature", "Speed"} <= set(shown)


def test_buttons_give_up_their_words_in_a_narrow_window(on: Stage) -> None:
    on.window.resize(1280, 720)
    on.generate(12)
    on.finish()
    on.settle()
    texts = [button.text() for button in on.window.page._buttons]
    assert texts == [""] * 4
    assert all(button.accessibleName() and button.toolTip() for button in on.window.page._buttons)
    on.generate(4)
    on.finish()
    on.settle()
    assert [button.text() for button in on.window.page._buttons] == ["Copy", "Save as…", "Export run…", "Fix it"]


# An answer that has no code.


@pytest.mark.parametrize("text", ["I cannot help with that.", "<think>\nShort: ```python\nx = 1\n``` No."])
def test_an_answer_without_code_says_so_and_shows_no_prose_as_code(open_stage: Callable[..., Stage], text: str) -> None:
    on = open_stage(from_texts([text, "x = 1\n"], chunk=7))
    on.write()
    on.generate(2)
    on.finish()
    code, page = on.window.page.code, on.window.page
    assert page.number == 1
    assert code.toPlainText() == ""
    assert code.placeholderText() == "This answer has no code. What the model wrote is in the Answer tab."
    for action in ("copy", "save"):
        assert not on.window.actions_by_id[action].isEnabled()
    assert on.window.actions_by_id["follow_up"].isEnabled()
    on.do("go_to_answer")
    assert page.answer.toPlainText() == text
    page.choose(2)
    on.do("go_to_code")
    assert (code.toPlainText(), code.placeholderText()) == ("x = 1\n", "")
    assert on.window.actions_by_id["copy"].isEnabled()
