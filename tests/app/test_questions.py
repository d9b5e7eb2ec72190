"""Questions in the window: a strip that takes no focus and moves nothing, answers by keys that become tests."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.widgets.question_strip import QuestionStrip
from engine.scripted import Script
from tests.app.doubling import PLUS, SQUARE, TIMES, answer, press, set_stage
from tests.app.stage import Stage


@pytest.fixture
def on(open_stage: Callable[..., Stage]) -> Stage:
    """Two square, one doubles what is positive, one doubles: the last one is right."""
    bodies = (SQUARE, "return x * x", PLUS, TIMES)
    stage = open_stage(Script(tuple(answer(body, number) for number, body in enumerate(bodies))))
    set_stage(stage)
    return stage


def strip(on: Stage) -> QuestionStrip:
    return on.controller.questions.strip


def ask(on: Stage) -> None:
    on.generate()
    on.finish()
    on.until(lambda: strip(on).isVisible())


def test_a_run_without_tests_is_compared_and_the_question_takes_no_focus(on: Stage) -> None:
    on.window.prompt.setFocus()
    before = on.window.focusWidget()
    ask(on)
    assert on.window.focusWidget() is before
    assert "Which is right?" in strip(on).sentence
    assert len(strip(on).choices) >= 2
    run = on.controller.run
    assert run is not None
    assert [run.standings[n].group for n in (1, 2, 3, 4)] == [(1, 2), (1, 2), (3,), (4,)]
    assert run.candidates[2].likeness == f"same behaviour as 1 on {run.standings[2].inputs} inputs"
    assert on.window.candidates.best in (1, 2)


def test_a_question_moves_nothing(on: Stage) -> None:
    on.generate()
    on.finish()
    parts = (on.window.page.tabs, on.window.page.code, on.window.prompt, on.window.status)
    on.controller.questions.strip.hide()
    before = [part.geometry() for part in parts]
    on.do("ask")
    on.until(lambda: strip(on).isVisible())
    assert [part.geometry() for part in parts] == before
    on.window.resize(on.window.width() + 60, on.window.height() + 40)
    QApplication.processEvents()
    assert on.window.page.rect().contains(strip(on).geometry())


def test_answers_by_keys_alone_leave_the_right_one_on_top(on: Stage) -> None:
    ask(on)
    for _ in range(4):
        if not strip(on).isVisible():
            break
        on.do("ask")  # F9
        assert on.window.focusWidget() is strip(on)
        question = on.controller.questions._question
        assert question is not None
        at = next(i for i, choice in enumerate(question.choices) if 4 in choice.reply.members)
        press(on, Qt.Key(Qt.Key.Key_1 + at))
    assert not strip(on).isVisible()
    assert on.window.candidates.best == 4
    assert on.window.page.number == 4
    tests = on.window.tests.text()
    assert tests.startswith("assert double(")
    assert on.controller.run is not None
    assert [c.passed for _, c in sorted(on.controller.run.candidates.items())] == [False, False, False, True]
    on.window.tests.undo()
    assert len(on.window.tests.text()) < len(tests)


def test_what_does_not_matter_is_not_asked_again_and_writes_no_test(on: Stage) -> None:
    ask(on)
    seen = set()
    for _ in range(40):
        if not strip(on).isVisible():
            break
        assert strip(on).sentence not in seen
        seen.add(strip(on).sentence)
        on.do("ask")
        press(on, Qt.Key.Key_0)
    assert not strip(on).isVisible()
    assert on.window.tests.blank


def test_something_else_can_be_written_and_nonsense_is_refused(on: Stage) -> None:
    ask(on)
    strip(on)._other.setText("certainly")
    strip(on)._other.returnPressed.emit()
    assert strip(on).isVisible()
    assert strip(on)._wrong.text().startswith("Write a value")
    strip(on)._other.setText("77")
    strip(on)._other.returnPressed.emit()
    on.settle()
    assert "== 77" in on.window.tests.text()
    assert not strip(on).isVisible()
    assert on.controller.run is not None
    assert not any(c.passed for c in on.controller.run.candidates.values())


def test_a_question_can_be_dismissed_and_asked_for_again(on: Stage) -> None:
    ask(on)
    first = strip(on).sentence
    on.do("ask")
    press(on, Qt.Key.Key_Escape)
    assert not strip(on).isVisible()
    assert not strip(on).hasFocus()
    on.do("ask")
    on.until(lambda: strip(on).isVisible())
    assert strip(on).sentence == first


def test_with_tests_or_switched_off_nothing_is_compared_by_itself(on: Stage) -> None:
    on.window.actions_by_id["ask_by_itself"].setChecked(False)
    on.generate()
    on.finish()
    on.steps(3)
    assert on.runner is None
    on.window.actions_by_id["ask_by_itself"].setChecked(True)
    on.window.tests.replace_text("assert double(1) == 2\n")
    on.generate()
    on.finish()
    on.steps(3)
    assert on.runner is None or not on.runner.observed
    assert not strip(on).isVisible()


def test_another_run_takes_the_question_away(on: Stage) -> None:
    ask(on)
    on.generate()
    on.steps(1)
    assert not strip(on).isVisible()


def test_candidates_that_agree_are_said_to(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(Script((answer(TIMES, 1), answer("return x + x", 2))))
    set_stage(stage)
    said: list[str] = []
    stage.window.status.flashed.connect(said.append)
    stage.generate(2)
    stage.finish()
    stage.until(lambda: bool(said))
    assert said[-1].startswith("All agree on ")
    assert not strip(stage).isVisible()


def test_without_a_sandbox_nothing_is_run_by_itself(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(Script((answer(TIMES, 1), answer(SQUARE, 2))))
    set_stage(stage, sealed=False)
    stage.generate(2)
    stage.finish()
    stage.steps(5)
    assert not strip(stage).isVisible()
    assert stage.controller.run is not None
    assert stage.controller.run.standings == {}


def test_groups_and_answers_are_there_after_a_restart_and_are_not_asked_again(
    on: Stage, open_stage: Callable[..., Stage]
) -> None:
    ask(on)
    first = strip(on).sentence
    on.do("ask")
    press(on, Qt.Key.Key_0)  # does not matter
    second = strip(on).sentence
    on.do("ask")
    press(on, Qt.Key.Key_1)
    run = on.controller.run
    assert run is not None
    on.until(lambda: not on.controller.running.testing)
    assert on.controller.history._recorder.flush()
    again = open_stage()
    set_stage(again)
    (entry,) = again.controller.history._read().entries()
    again.controller.history.open(entry.id)
    back = again.controller.run
    assert back is not None
    assert {n: c.likeness for n, c in back.candidates.items()} == {n: c.likeness for n, c in run.candidates.items()}
    assert back.ranking() == run.ranking()
    assert again.window.candidates.best == on.window.candidates.best
    assert back.result()["behaviour"] == run.result()["behaviour"]
    assert not again.window.actions_by_id["ask"].isEnabled()
    again.controller.history.use_again()
    assert again.window.tests.text() == on.window.tests.text()
    heard: list[str] = []
    again.window.status.flashed.connect(heard.append)
    again.do("ask")
    again.until(lambda: strip(again).isVisible() or bool(heard))
    for _ in range(40):
        if not strip(again).isVisible():
            break
        assert strip(again).sentence not in (first, second)
        again.do("ask")
        press(again, Qt.Key.Key_0)
    assert not strip(again).isVisible()


def test_what_does_not_matter_is_not_asked_again_after_the_tests_were_changed(on: Stage) -> None:
    ask(on)
    first = strip(on).sentence
    on.do("ask")
    press(on, Qt.Key.Key_0, Qt.Key.Key_Escape)
    on.window.tests.replace_text("assert double(100) == 200\n")
    on.do("ask")
    on.until(lambda: strip(on).isVisible())
    assert strip(on).sentence.split(":")[0] != first.split(":")[0]


def test_an_answer_that_is_undone_is_asked_for_again(on: Stage) -> None:
    ask(on)
    first = strip(on).sentence
    on.do("ask")
    press(on, Qt.Key.Key_1)
    if strip(on).isVisible():
        on.do("ask")
        press(on, Qt.Key.Key_Escape)
    on.window.tests.undo()
    assert on.window.tests.blank
    on.do("ask")
    on.until(lambda: strip(on).isVisible())
    assert strip(on).sentence == first
