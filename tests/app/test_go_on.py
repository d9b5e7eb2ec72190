"""A run of the history goes on where it was ended, also by a kill: same seeds, nothing lost, nothing written twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from app.ui.theme import Theme
from engine.contract import Add, Generate, Message
from engine.scripted import Script, ScriptedEngine, from_texts
from engine.session.journal import Journal
from tests.app.stage import Stage, stage

ROOT = Path(__file__).resolve().parents[2]
RIGHT = "```python\ndef roman_to_int(s):\n    return s[i + 1]  # as the stage's runner reads it\n```"
PASSES = 30  # the number of the first candidate that passes


def script() -> Script:
    wrong = (f"```python\ndef roman_to_int(s):\n    return {n}{' # and more' * (n % 5)}\n```" for n in range(1, PASSES))
    return from_texts([*wrong, RIGHT], chunk=6)


WINDOW = """
import sys
import app.window.start as start
from engine.scripted import ScriptedEngine
from tests.app.stage import ASSERTS, PROMPT, RehearsedRunner
from tests.app.test_go_on import script
from PySide6.QtCore import QTimer

build = start.build

def and_search(theme, engine, runner, settings, history):
    controller = build(theme, lambda choice: ScriptedEngine(script()), RehearsedRunner, settings, history)
    shown = []

    def begin():
        controller.window.bar.choose_model("scripted")
        controller.window.prompt.replace_text(PROMPT)
        controller.window.tests.replace_text(ASSERTS)
        controller.window.actions_by_id["until_pass"].trigger()
        controller.generate()

    def tell():
        for number, candidate in controller.run.candidates.items() if controller.run else ():
            if candidate.ended and number not in shown:
                shown.append(number)
                QTimer.singleShot(100, lambda number=number: print(number, flush=True))  # in view for a moment

    controller.loading.drained.connect(tell)
    QTimer.singleShot(0, begin)
    return controller

start.build = and_search
sys.exit(start.main([]))
"""


class Watched(ScriptedEngine):
    """Notes which candidates it was asked for."""

    def __init__(self, script: Script, clock: object, numbers: list[int]):
        super().__init__(script, clock)  # type: ignore[arg-type]
        self._numbers = numbers

    def submit(self, message: Message) -> None:
        if isinstance(message, Generate):
            self._numbers += message.request.numbers
        elif isinstance(message, Add):
            self._numbers += range(max(self._numbers) + 1, max(self._numbers) + 1 + message.count)
        super().submit(message)


@pytest.fixture
def second(theme: Theme, tmp_path: Path) -> Iterator[Callable[[], tuple[Stage, list[int]]]]:
    """The window of the next start, which has the same history, and the numbers that its engine is asked for."""
    stages = []

    def start() -> tuple[Stage, list[int]]:
        context = stage(theme, tmp_path / "data", script())
        on = context.__enter__()
        stages.append(context)
        numbers: list[int] = []
        on.controller.loading.open_engine = lambda choice: (
            on.engines.append(Watched(on.script, on.clock, numbers)) or on.engines[-1]
        )
        on.window.show()
        on.controller.history.recover()
        assert on.controller.history._recorder.flush()
        QApplication.processEvents()
        return on, numbers

    yield start
    for context in stages:
        context.__exit__(None, None, None)


def offers(on: Stage) -> dict[str, QPushButton]:
    return {b.text(): b for b in on.window.findChildren(QPushButton) if b.isVisible() and b.text()}


@pytest.mark.parametrize("told", [1, 9, 20])
def test_a_search_killed_with_kill_9_goes_on_from_the_history(
    second: Callable[[], tuple[Stage, list[int]]], tmp_path: Path, told: int
) -> None:
    env = os.environ | {"BASSLINE_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", WINDOW], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        seen = [int(child.stdout.readline()) for _ in range(told)]
        child.send_signal(signal.SIGKILL)
        seen += [int(line) for line in child.stdout.read().split()]
    on, asked = second()
    journal = Journal(on.controller.history._file)
    (entry,) = journal.entries()
    kept = journal.load(entry.id).run
    journal.close()
    done = {n: c.text for n, c in kept.candidates.items() if c.state == "done"}
    assert set(seen) <= set(done)
    assert not any(c.passed for c in kept.candidates.values())
    assert on.window.notice.sentence.startswith(f"Bassline closed unexpectedly: {len(done)} of {len(kept.candidates)}")
    offers(on)["Go on"].click()
    on.until(lambda: on.controller.running.busy)
    on.until(lambda: not on.controller.situation().busy)
    run = on.controller.run
    assert run is not None
    assert run.candidates[PASSES].passed
    whole = ["".join(candidate.chunks) for candidate in on.script.candidates]
    finished = {n: c.text for n, c in run.candidates.items() if c.state == "done"}
    assert all(text == whole[(n - 1) % PASSES] for n, text in finished.items())
    assert set(range(1, PASSES + 1)) - set(finished) <= {n for n, c in run.candidates.items() if c.state == "stopped"}
    assert {n: run.candidates[n].text for n in done} == done
    assert not set(asked) & set(done)
    assert len(asked) == len(set(asked))
    assert {c.seed for c in run.candidates.values()} == {kept.request.seed}
    assert on.controller.history._recorder.flush()
    journal = Journal(on.controller.history._file)
    (after,) = journal.entries()  # it is still the one run
    again = journal.load(after.id).run
    journal.close()
    assert after.id == entry.id
    assert {n: c.text for n, c in again.candidates.items()} == {n: c.text for n, c in run.candidates.items()}
    assert again.candidates[PASSES].passed


def past(on: Stage) -> None:
    """The newest run of the history, in view to be read."""
    assert on.controller.history._recorder.flush()
    journal = Journal(on.controller.history._file)
    newest = journal.entries()[0].id
    journal.close()
    on.controller.history.open(newest)
    QApplication.processEvents()


def test_a_run_without_tests_is_finished(second: Callable[[], tuple[Stage, list[int]]]) -> None:
    on, asked = second()
    on.write(tests="")
    on.generate(6)
    on.until(
        lambda: sum(c.state == "done" for c in (on.controller.run.candidates if on.controller.run else {}).values()) > 1
    )
    on.do("stop")
    on.finish()
    first = on.controller.run
    assert first is not None
    done = {n: c.text for n, c in first.candidates.items() if c.state == "done"}
    assert 0 < len(done) < 6
    asked.clear()
    past(on)
    offers(on)["Go on"].click()
    on.until(lambda: on.controller.running.busy)
    assert on.controller.history.past is None
    on.until(lambda: not on.controller.situation().busy)
    run = on.controller.run
    assert run is not None
    assert run is not first
    assert [c.state for c in run.candidates.values()] == ["done"] * 6
    assert sorted([*asked, *done]) == list(range(1, 7))
    past(on)
    assert "Go on" not in offers(on)  # nothing of it is missing any more
    assert "Use again" in offers(on)


def test_going_on_after_the_most_candidates_gives_as_many_more(second: Callable[[], tuple[Stage, list[int]]]) -> None:
    on, asked = second()
    on.write()
    on.do("until_pass")
    on.window.bar._candidates.set_value(20)
    on.do("generate")
    on.until(lambda: on.controller.running.busy)
    on.until(lambda: not on.controller.situation().busy)
    assert sorted(asked) == list(range(1, 21))
    past(on)
    offers(on)["Go on"].click()
    on.until(lambda: on.controller.running.busy)
    on.until(lambda: not on.controller.situation().busy)
    run = on.controller.run
    assert run is not None
    assert run.candidates[PASSES].passed
    assert len(asked) == len(set(asked))
    assert on.window.is_on("until_pass")


def test_a_run_that_passed_needs_nothing_more(second: Callable[[], tuple[Stage, list[int]]]) -> None:
    on, _ = second()
    on.write()
    on.do("until_pass")
    on.do("generate")
    on.until(lambda: on.controller.running.busy)
    on.until(lambda: not on.controller.situation().busy)
    past(on)
    assert "Go on" not in offers(on)
