"""Questions in the window: a strip that takes no focus and moves nothing, answers by keys that become tests."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.widgets.question_strip import QuestionStrip
from engine.runner.encoding import encode
from engine.runner.protocol import Answer, Observe, Observed, RunTests
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate
from tests.app.stage import LAMPS, RehearsedRunner, Stage

PROMPT = "Write double(x). It is called as double(3), double(0) or double(-4)."
SQUARE, TIMES, PLUS = "return x ** 2", "return x * 2", "return abs(x) + abs(x)"


def answer(body: str, number: int = 0) -> ScriptedCandidate:
    return ScriptedCandidate((f"```python\ndef double(x):\n    {body}  # {number}\n```",))


def called(request: Observe) -> Answer:
    """What this file's own candidates do, without a box."""
    names: dict[str, Any] = {}
    exec(request.solution, names)
    outcomes = []
    for text in request.inputs:
        ((name, arguments),) = json.loads(text)["calls"]
        value = names[name](*(eval(argument) for argument in arguments))
        outcomes.append(json.dumps({"kind": "value", "value": encode(value)}))
    return Observed(request.id, tuple(outcomes))


def judged(test: RunTests) -> Report:
    names: dict[str, Any] = {}
    exec(test.solution, names)
    results = []
    for line in filter(None, test.tests.splitlines()):
        try:
            exec(line, names)
            results.append(TestResult(line, "passed"))
        except AssertionError:
            results.append(TestResult(line, "failed", line))
    verdict = "pass" if all(result.outcome == "passed" for result in results) else "fail"
    return Report(verdict, "split", tests=tuple(results), isolation=LAMPS)


@pytest.fixture
def on(open_stage: Callable[..., Stage]) -> Stage:
    """Two square, one doubles what is positive, one doubles: the last one is right."""
    bodies = (SQUARE, "return x * x", PLUS, TIMES)
    stage = open_stage(Script(tuple(answer(body, number) for number, body in enumerate(bodies))))
    set_stage(stage)
    return stage


def set_stage(stage: Stage, **options: Any) -> None:
    def open_runner(say: Callable[[Answer], None]) -> RehearsedRunner:
        stage.runner = RehearsedRunner(say, judge=judged, behave=called, **options)
        return stage.runner

    stage.controller.runner._open_runner = open_runner
    stage.window.actions_by_id["ask_by_itself"].setChecked(True)
    stage.window.show()
    stage.write(PROMPT, "")


def strip(on: Stage) -> QuestionStrip:
    return on.controller.questions.strip


def ask(on: Stage) -> None:
    on.generate()
    on.finish()
    on.until(lambda: strip(on).isVisible())


def press(on: Stage, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(QApplication.focusWidget() or on.window, key)
        on.settle()
        QApplication.processEvents()


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
