"""Candidates that are to double a number, called and judged without a box: for tests of what they do."""

import json
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.contract import Generate, ModelChoice
from engine.elicitation.outcomes import Outcome
from engine.runner.encoding import encode
from engine.runner.protocol import Answer, Observe, Observed, RunTests
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from tests.app.stage import LAMPS, RehearsedRunner, Stage

PROMPT = "Write double(x). It is called as double(3), double(0) or double(-4)."
SQUARE, TIMES, PLUS = "return x ** 2", "return x * 2", "return abs(x) + abs(x)"


def answer(body: str, number: int = 0) -> ScriptedCandidate:
    return ScriptedCandidate((f"```python\ndef double(x):\n    {body}  # {number}\n```",))


def called(request: Observe) -> Answer:
    """What they do, without a box. Only texts of this file and of its callers are run."""
    names: dict[str, Any] = {}
    exec(request.solution, names)
    outcomes = []
    for text in request.inputs:
        ((name, arguments),) = json.loads(text)["calls"]
        try:
            value = names[name](*(eval(argument) for argument in arguments))
            outcomes.append(Outcome("value", encode(value)).to_json())
        except Exception as error:
            outcomes.append(Outcome("raised", error=type(error).__name__).to_json())
    return Observed(request.id, tuple(outcomes))


def judged(test: RunTests) -> Report:
    names: dict[str, Any] = {}
    exec(test.solution, names)
    results = []
    for line in filter(None, test.tests.splitlines()):
        try:
            exec(line, names)
            results.append(TestResult(line, "passed"))
        except Exception:
            results.append(TestResult(line, "failed", line))
    verdict = "pass" if all(result.outcome == "passed" for result in results) else "fail"
    return Report(verdict, "split", tests=tuple(results), isolation=LAMPS)


def set_stage(stage: Stage, **options: Any) -> None:
    def open_runner(say: Callable[[Answer], None]) -> RehearsedRunner:
        stage.runner = RehearsedRunner(say, judge=judged, behave=called, **options)
        return stage.runner

    stage.controller.runner._open_runner = open_runner
    stage.window.actions_by_id["ask_by_itself"].setChecked(True)
    stage.window.show()
    stage.write(PROMPT, "")


def press(on: Stage, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(QApplication.focusWidget() or on.window, key)
        on.settle()
        QApplication.processEvents()


class WritesTests(ScriptedEngine):
    """Plays ``tests`` when it is asked for tests of the candidates, and its script otherwise."""

    def __init__(self, stage: Stage, tests: Script):
        super().__init__(stage.script, stage.clock)
        self._scripts = {True: tests, False: stage.script}
        self.asked: list[Generate] = []

    def submit(self, message: Any) -> None:
        if isinstance(message, Generate):
            self.asked.append(message)
            self.script = self._scripts[message.run.startswith("suggest")]
        super().submit(message)


def written(*lines: str) -> Script:
    """Tests in a block, and without one, a line at a step."""
    plain = tuple(f"{line}\n" for line in lines)
    return Script((ScriptedCandidate(("```python\n", *plain, "```")), ScriptedCandidate(plain)))


def writes_tests(stage: Stage, tests: Script) -> None:
    """The engine of the stage writes these when it is asked for tests."""

    def open_engine(choice: ModelChoice) -> ScriptedEngine:
        stage.engines.append(WritesTests(stage, tests))
        return stage.engines[-1]

    stage.controller.loading.open_engine = open_engine
