"""Stop and close in every state: heard at once, done when the engine says so, never stuck."""

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QApplication

from app.dialogs.question import QuestionDialog
from engine.contract import Closed
from engine.scripted import from_texts
from tests.app.stage import Stage


def while_loading(on: Stage) -> None:
    on.generate(4)
    on.until(lambda: on.window.loading.isVisible())


def while_reading_the_prompt(on: Stage) -> None:
    on.generate(4)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "reading prompt")


def at_the_first_token(on: Stage) -> None:
    on.generate(4)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")


def with_thirty_two(on: Stage) -> None:
    on.generate(32)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")


def when_some_have_finished(on: Stage) -> None:
    on.generate(6)
    on.until(
        lambda: on.controller.run is not None and any(c.state == "done" for c in on.controller.run.candidates.values())
    )


def while_testing(on: Stage) -> None:
    on.generate(4)
    on.finish()
    on.do("run_tests")
    on.settle()
    assert on.controller.situation().testing


def when_nothing_runs(on: Stage) -> None:
    pass


STATES = [
    while_loading,
    while_reading_the_prompt,
    at_the_first_token,
    with_thirty_two,
    when_some_have_finished,
    while_testing,
]


@pytest.fixture
def slow(open_stage: Callable[..., Stage]) -> Stage:
    """A runner that waits, so a test run can be stopped."""
    result = open_stage(hold=True)
    result.write()
    return result


@pytest.mark.parametrize("reach", STATES)
def test_stop_is_said_at_once_and_done_when_the_engine_says_so(slow: Stage, reach: Callable[[Stage], None]) -> None:
    """In every state; nothing is ever stuck, and everything can start again."""
    reach(slow)
    assert slow.window.actions_by_id["stop"].isEnabled()
    running = slow.controller.situation().running
    slow.do("stop")
    if running:
        assert slow.window.status.text.startswith("Stopping")
        assert slow.window.actions_by_id["stop"].toolTip() == "Stopping…"
        assert not slow.window.actions_by_id["generate"].isEnabled()
    slow.until(lambda: not slow.controller.situation().busy, steps=3)
    if running:
        assert slow.controller.run is not None
        assert slow.window.status.text.startswith("Stopped")
        assert {c.state for c in slow.controller.run.candidates.values()} <= {"done", "stopped"}
    slow.do("generate")  # and everything can start again
    slow.finish()
    assert slow.controller.run is not None
    assert slow.controller.run.outcome == "finished"


def test_tests_can_run_again_right_after_a_stop(slow: Stage) -> None:
    while_testing(slow)
    assert slow.runner is not None
    slow.do("stop")
    slow.do("run_tests")
    slow.settle()
    assert len(slow.runner.cancelled) == 4
    slow.runner.let_go()
    slow.settle()
    assert slow.controller.run is not None
    verdicts = [c.report.verdict if c.report else "" for c in slow.controller.run.candidates.values()]
    assert verdicts == ["pass", "fail", "pass", "pass"]  # none of them from the cancelled round


@pytest.mark.parametrize("reach", STATES)
def test_closing_while_busy_asks_one_question(slow: Stage, reach: Callable[[Stage], None]) -> None:
    """In every state, one question; nothing is left behind (see conftest)."""
    reach(slow)
    over: list[bool] = []
    slow.controller.closed.connect(over.append)
    slow.window.close()
    question = slow.window.findChild(QuestionDialog)
    assert question is not None
    question.no.click()
    QApplication.processEvents()
    assert slow.window.isVisible()
    slow.window.close()
    question = next(q for q in slow.window.findChildren(QuestionDialog) if q.isVisible())
    slow.clock.let_run()
    question.yes.click()
    assert over == [True]
    assert not slow.window.isVisible()
    assert slow.runner is None or slow.runner.closed


def test_the_question_goes_with_what_it_asks_about(slow: Stage) -> None:
    slow.do("test_as_finished")
    slow.generate(2)
    slow.until(lambda: slow.controller.situation().running)
    slow.window.close()
    question = slow.window.findChild(QuestionDialog)
    assert question is not None
    assert question.text.text().startswith("Candidates are being generated.")
    slow.finish()
    assert question.isVisible()
    assert question.text.text().startswith("Tests are running.")
    assert slow.runner is not None
    slow.runner.let_go()
    slow.settle()
    assert not [q for q in slow.window.findChildren(QuestionDialog) if q.isVisible()]
    assert slow.window.isVisible()


def test_closing_when_nothing_runs_asks_nothing(slow: Stage) -> None:
    over: list[bool] = []
    slow.controller.closed.connect(over.append)
    slow.window.close()
    assert slow.window.findChild(QuestionDialog) is None
    assert over == [True]


def test_stop_changes_nothing_when_nothing_runs(slow: Stage) -> None:
    assert not slow.window.actions_by_id["stop"].isEnabled()
    assert slow.window.actions_by_id["stop"].toolTip() == "Nothing is running."


def test_an_engine_that_left_is_replaced(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x = 1"]))
    on.write()
    on.generate(1)
    on.finish()
    assert on.controller.loading.engine is not None
    on.controller.loading.engine._inbox.put(Closed())
    on.controller.loading.engine.drain()
    assert on.controller.ready is None
    on.do("generate")
    on.finish()
    assert len(on.engines) == 2
