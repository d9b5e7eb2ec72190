"""What is chosen in the model box is loaded ahead of time, but never under a run that goes on."""

from collections.abc import Callable

import pytest

from engine.contract import Generate, Load, Message, ModelChoice
from engine.runner.protocol import RunTests
from engine.runner.report import Report
from engine.scripted import Script, ScriptedEngine, from_texts
from tests.app.stage import Stage

FIRST, OTHER, SERVER = "first model", "other model", "http://localhost:1"


class Listening(ScriptedEngine):
    """Notes what it is to load, and when it is to generate."""

    def __init__(self, on: Stage, heard: list[str]):
        super().__init__(on.script, on.clock)
        self._heard = heard

    def submit(self, message: Message) -> None:
        if isinstance(message, Load):
            self._heard.append(message.choice.server or message.choice.model)
        elif isinstance(message, Generate):
            self._heard.append("generate")
        super().submit(message)


def listen(on: Stage) -> list[str]:
    """What every engine that is opened from now on is asked."""
    heard: list[str] = []

    def open_engine(choice: ModelChoice) -> Listening:
        heard.append("an engine")
        return Listening(on, heard)

    on.controller.loading.open_engine = open_engine
    return heard


def choose(on: Stage, model: str) -> None:
    on.window.bar.choose_model(model)
    on.window.bar.model_chosen.emit()


def generating(on: Stage) -> bool:
    return on.controller.run is not None and on.controller.run.state == "generating"


@pytest.mark.parametrize(("other", "asked"), [(OTHER, [OTHER]), (SERVER, ["an engine", SERVER])])
def test_a_model_chosen_during_a_run_is_loaded_when_the_run_has_ended(on: Stage, other: str, asked: list[str]) -> None:
    heard = listen(on)
    on.generate_with(FIRST, 3)
    on.until(lambda: generating(on))
    choose(on, other)
    on.settle()
    assert heard == ["an engine", FIRST, "generate"]
    on.until(lambda: on.controller.run is not None and on.controller.run.ended)
    run = on.controller.run
    assert run is not None
    assert run.outcome == "finished"
    on.until(lambda: on.controller.loading.preloading is None and on.controller.ready is not None)
    assert heard == ["an engine", FIRST, "generate", *asked]
    assert on.controller.loading.loaded is not None
    assert on.controller.loading.has(on.window.bar.settings().choice)


def test_a_model_chosen_during_a_run_and_taken_back_is_not_loaded(on: Stage) -> None:
    heard = listen(on)
    on.generate_with(FIRST, 3)
    on.until(lambda: generating(on))
    choose(on, OTHER)
    choose(on, FIRST)
    on.finish()
    on.settle()
    assert heard == ["an engine", FIRST, "generate"]


def none_passes() -> Script:
    return from_texts([f"```python\ndef roman_to_int(s):\n    return {number}\n```" for number in range(100)], chunk=20)


@pytest.mark.parametrize("other", [OTHER, SERVER])
def test_every_part_of_a_search_is_written_by_its_own_model(open_stage: Callable[..., Stage], other: str) -> None:
    on = open_stage(none_passes())
    on.write()
    heard = listen(on)
    on.window.bar.choose_model(FIRST)
    on.do("until_pass")
    on.window.bar._candidates.set_value(40)
    on.do("generate")
    on.until(lambda: generating(on))
    choose(on, other)
    on.until(lambda: not on.controller.running.busy)
    assert heard.count("generate") > 1
    assert heard[: heard.count("generate") + 2] == ["an engine", FIRST] + ["generate"] * heard.count("generate")
    assert on.controller.run is not None
    assert len(on.controller.run.candidates) == 40


def test_more_candidates_load_nothing_while_a_search_waits_for_its_tests(open_stage: Callable[..., Stage]) -> None:
    """Between two parts of it the engine rests, and the run is not over."""
    on = open_stage(none_passes(), hold=True)
    on.write()
    heard = listen(on)
    on.window.bar.choose_model(FIRST)
    on.do("until_pass")
    on.window.bar._candidates.set_value(40)
    on.do("generate")
    on.until(lambda: on.controller.run is not None and on.controller.run.ended)
    assert on.controller.running.busy
    before = len(on.controller.run.candidates)  # type: ignore[union-attr]
    choose(on, OTHER)
    on.controller.running.more(4, on.window.bar.settings().choice)
    on.settle()
    assert heard == ["an engine", FIRST, "generate", "generate"]
    on.until(lambda: on.controller.run is not None and on.controller.run.ended)
    assert len(on.controller.run.candidates) == before + 4  # type: ignore[union-attr]
    assert on.runner is not None
    on.runner.judge = passed
    on.runner.let_go()
    on.until(lambda: not on.controller.running.busy)


def passed(test: RunTests) -> Report:
    return Report("pass", "split")
