"""A whole window on the scripted engine with a clock that the test moves, and a runner that knows its answers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from app.system.engines import recorded_answers
from app.ui.theme import Theme
from app.widgets.main_window import MainWindow
from app.window.controller import MainController
from app.window.start import build
from engine.contract import Engine, ModelChoice
from engine.runner.protocol import (
    Answer,
    ConsentNeeded,
    Isolation,
    Observe,
    Observed,
    RunTests,
    TestFinished,
    TestProgress,
    TestStarted,
)
from engine.runner.report import Report, TestResult
from engine.scripted import HandClock, Script, ScriptedEngine, from_texts

PATIENCE_S = 0.5  # for an engine's thread that others keep from running
FIRST_WORDS = "Candidates are programs that a model wrote; they run in a sealed box."
LAMPS = {
    "files": "the candidate sees no file of yours",
    "network": "no network",
    "memory": "limited to 1 GiB",
    "processes": "limited, and all ended afterwards",
    "verdict": "given outside of the candidate's process",
}
ASSERTS = """\
assert roman_to_int("III") == 3
assert roman_to_int("LVIII") == 58
assert roman_to_int("MCMXCIV") == 1994
"""
PROMPT = "Write a Python function roman_to_int(s) that converts a Roman numeral to an integer."


def verdict_by_subtraction(test: RunTests) -> Report:
    """The recorded answers that are right all look at the next letter."""
    right = "i + 1" in test.solution or "zip(" in test.solution or "reversed" in test.solution
    last = TestResult("line 3", "passed", seconds=0.001)
    if not right:
        last = TestResult("line 3", "failed", 'assert roman_to_int("MCMXCIV") == 1994, where it returned 2216', 0.001)
    tests = (TestResult("line 1", "passed", seconds=0.001), TestResult("line 2", "passed", seconds=0.001), last)
    return Report("pass" if right else "fail", "split", tests=tests, isolation=LAMPS, seconds=0.21)


@dataclass
class RehearsedRunner:
    """Answers at once, or when ``held`` is let go. ``sealed`` False asks for consent first."""

    answer: Callable[[Answer], None]
    judge: Callable[[RunTests], Report] = verdict_by_subtraction
    sealed: bool = True
    hold: bool = False
    behave: Callable[[Observe], Answer] = lambda request: Observed(request.id, (), "nothing is observed here")
    observed: list[Observe] = field(default_factory=list)
    heard: list[RunTests] = field(default_factory=list)
    held: list[RunTests] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    closed: bool = False

    def probe(self) -> None:
        self.answer(Isolation(self.sealed, LAMPS, words=FIRST_WORDS))

    def test(self, test: RunTests) -> None:
        self.heard.append(test)
        if not self.sealed and not test.consent:
            self.answer(ConsentNeeded(test.id, "This machine has no bubblewrap."))
        elif self.hold:
            self.held.append(test)
            self.answer(TestStarted(test.id, 3))
        else:
            self._finish(test)

    def let_go(self) -> None:
        held, self.held = self.held, []
        for test in held:
            self._finish(test)

    def cancel(self, id: str) -> None:
        self.cancelled.append(id)
        self.answer(TestFinished(id, Report("infra", "split", why="cancelled")))

    def observe(self, request: Observe) -> None:
        self.observed.append(request)
        if not self.sealed and not request.consent:
            self.answer(ConsentNeeded(request.id, "There is no sandbox here."))
        else:
            self.answer(self.behave(request))

    def close(self) -> None:
        self.closed = True

    def _finish(self, test: RunTests) -> None:
        report = self.judge(test)
        self.answer(TestStarted(test.id, len(report.tests)))
        for result in report.tests:
            self.answer(TestProgress(test.id, result))
        self.answer(TestFinished(test.id, report))


class StageClock(HandClock):
    """Stands still until it is moved; after ``let_run`` nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__()
        self._runs = False
        self._until = 0.0

    @property
    def resting(self) -> bool:
        """Somebody sleeps, and has not been woken yet."""
        return self._until > self.now() + 1e-9

    def let_run(self) -> None:
        self._runs = True
        self.advance(1e6)

    def sleep(self, seconds: float) -> None:
        if not self._runs:
            self._until = self.now() + seconds
            super().sleep(seconds)


class Stage:
    """``advance`` moves the engine's clock step by step; nothing happens otherwise."""

    def __init__(
        self,
        theme: Theme,
        script: Script,
        home: Path,
        sealed: bool = True,
        hold: bool = False,
        as_finished: bool = False,
    ):
        self.script, self.clock = script, StageClock()
        self.engines: list[ScriptedEngine] = []
        self.runner: RehearsedRunner | None = None
        self.judge: Callable[[RunTests], Report] = verdict_by_subtraction  # for a runner that is not open yet
        self._sealed, self._hold = sealed, hold
        self.home = home
        self.controller: MainController = build(
            theme, self._open_engine, self._open_runner, home, home / "history.sqlite"
        )
        self.window: MainWindow = self.controller.window
        self.window.bar.choose_model("scripted")
        self.window.actions_by_id["ask_by_itself"].setChecked(False)
        self.window.actions_by_id["test_as_finished"].setChecked(as_finished)  # most tests say themselves when

    def _open_engine(self, choice: ModelChoice) -> Engine:
        self.engines.append(ScriptedEngine(self.script, self.clock))
        return self.engines[-1]

    def _open_runner(self, answer: Callable[[Answer], None]) -> RehearsedRunner:
        self.runner = RehearsedRunner(answer, self.judge, sealed=self._sealed, hold=self._hold)
        return self.runner

    def do(self, action: str) -> None:
        """As a key or a menu would: nothing happens when it is greyed."""
        self.window.actions_by_id[action].trigger()
        QApplication.processEvents()

    def until(self, fact: Callable[[], bool], steps: int = 4000) -> None:
        """Let the clock go on until ``fact`` holds."""
        for _ in range(steps):
            if fact():
                return
            self.clock.advance(self.script.step_s)
            self.settle()
        raise AssertionError(f"it never came: {self.window.status.text!r}, notice {self.window.notice.sentence!r}")

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(self.script.step_s)
            self.settle()

    def settle(self) -> None:
        """Let the engine's thread say what it has to say at this moment, and the window take it in."""
        end = time.monotonic() + PATIENCE_S
        while True:
            time.sleep(0.001)
            engine = self.controller.loading.engine
            said_all = engine is None or not engine._due or self.clock.resting
            if engine is not None:
                engine.drain()
            QApplication.processEvents()
            if said_all or time.monotonic() > end:
                return

    def write(self, prompt: str = PROMPT, tests: str = ASSERTS) -> None:
        self.window.prompt.replace_text(prompt)
        self.window.tests.replace_text(tests)

    def generate(self, count: int = 4) -> None:
        self.window.bar.apply(replace(self.window.bar.settings(), candidates=count, seed=1))
        self.do("generate")

    def generate_with(self, model: str, count: int) -> None:
        """As ``generate``, with the model that is called so."""
        self.window.bar.choose_model(model)
        self.generate(count)

    def wait_until(self, fact: Callable[[], bool], seconds: float = 5.0) -> None:
        """Let real time go by, while the engine's clock stands."""
        end = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < end, "it never came"
            self.settle()

    def finish(self) -> None:
        """Until the engine has nothing left to do."""
        self.until(lambda: not (now := self.controller.situation()).loading and not now.running)


@contextmanager
def stage(theme: Theme, home: Path, script: Script | None = None, **options: bool) -> Iterator[Stage]:
    """A stage that is swept afterwards: thread ended, window gone, no timer left."""
    result = Stage(theme, script or from_texts(recorded_answers(), chunk=6), home, **options)
    try:
        yield result
    finally:
        result.clock.let_run()
        result.controller.shut_down()
        result.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QApplication.processEvents()
