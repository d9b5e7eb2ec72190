"""Tests that the model suggests: a list that takes no focus and moves nothing, ticks by keys that become tests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialog

from app.controllers import suggested_tests as sentences
from app.ui.actions import ACTIONS
from app.widgets.suggested_tests import SuggestedTests
from engine.contract import Generate, ModelChoice
from engine.scripted import Script, ScriptedCandidate
from engine.session.journal import Journal
from engine.session.states import TestState
from tests.app.doubling import PLUS, SQUARE, TIMES, WritesTests, answer, press, set_stage, writes_tests, written
from tests.app.stage import Stage

ASSERTS = ("assert double(1) == 99", "assert double(-3) == -6", "assert double(5) == 10", "assert double(2) == 4")


def with_tests(stage: Stage, tests: Script, **options: Any) -> Stage:
    writes_tests(stage, tests)
    set_stage(stage, **options)
    stage.window.actions_by_id["ask_by_itself"].setChecked(False)
    return stage


@pytest.fixture
def on(open_stage: Callable[..., Stage]) -> Stage:
    """Two square, one doubles what is positive, one doubles: the last one is right."""
    bodies = (SQUARE, "return x * x", PLUS, TIMES)
    stage = open_stage(Script(tuple(answer(body, number) for number, body in enumerate(bodies))))
    return with_tests(stage, written(*ASSERTS))


def shown(on: Stage) -> SuggestedTests:
    return on.controller.suggesting.list


def asked(on: Stage) -> list[Generate]:
    engine = on.engines[-1]
    assert isinstance(engine, WritesTests)
    return [message for message in engine.asked if message.run.startswith("suggest")]


def finished(on: Stage, count: int = 4) -> Stage:
    on.generate(count)
    on.finish()
    return on


def suggest(on: Stage) -> Stage:
    finished(on).do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    return on


def writing(on: Stage) -> Stage:
    """The model has begun, and will go on for a while."""
    finished(on).do("suggest_tests")
    on.until(lambda: on.controller.suggesting.writing)
    on.steps(2)
    assert "The model writes tests: 0 of 8" in on.window.status.model_text
    return on


def said(on: Stage) -> list[str]:
    sentences: list[str] = []
    on.window.status.flashed.connect(sentences.append)
    return sentences


def why_not(on: Stage) -> str:
    """Why tests cannot be suggested now."""
    on.controller.showing.refresh()
    action = next(action for action in ACTIONS if action.id == "suggest_tests")
    sentence = action.blocked(on.controller.situation())
    assert on.window.actions_by_id["suggest_tests"].isEnabled() == (not sentence)
    return sentence


def test_what_the_model_writes_is_offered_with_who_agrees_and_nothing_ticked(on: Stage) -> None:
    finished(on)
    on.window.prompt.setFocus()
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert on.window.focusWidget() is on.window.prompt
    assert shown(on).words == [
        "assert double(2) == 4, suggested, 4 of 4 candidates agree",
        "assert double(5) == 10, suggested, 2 of 4 candidates agree",
        "assert double(-3) == -6, suggested, 1 of 4 candidates agree",
    ]
    assert shown(on).ticked == []
    assert on.window.tests.blank
    assert "writes tests" not in on.window.status.model_text


def test_what_the_model_writes_is_nothing_of_the_run(on: Stage) -> None:
    run = finished(on).controller.run
    assert run is not None
    before, tabs = run.result(), on.window.page.tabs.count()
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    after = run.result()
    assert {name: after[name] for name in before} == before
    assert on.controller.run is run
    assert on.window.page.tabs.count() == tabs
    assert on.controller.history._recorder.flush()
    journal = Journal(on.controller.history._file)
    assert [entry.candidates for entry in journal.entries()] == [4]
    journal.close()


def test_suggested_tests_order_the_candidates_and_make_no_mark(on: Stage) -> None:
    run = suggest(on).controller.run
    assert run is not None
    assert [c.agreement for _, c in sorted(run.candidates.items())] == [
        "agrees with 1 of 3 suggested tests",
        "agrees with 1 of 3 suggested tests",
        "agrees with 2 of 3 suggested tests",
        "agrees with 3 of 3 suggested tests",
    ]
    assert on.window.candidates.best == 4  # though more candidates square
    assert all(c.report is None and c.test_state == TestState.NOT_RUN for c in run.candidates.values())
    assert on.runner is not None
    assert on.runner.heard == []
    assert "agrees with 2 of 3 suggested tests" in on.window.page.tabs.tabToolTip(2)
    badge = on.window.candidates.badge(2)
    assert badge is not None
    assert badge.note == "agrees 2/3"


def test_ticked_tests_are_added_by_keys_alone_in_one_step(on: Stage) -> None:
    suggest(on)
    on.do("suggest_tests")  # to the list
    assert shown(on).has_focus
    press(on, Qt.Key.Key_Return)
    assert shown(on).isVisible()  # nothing is ticked, so nothing is added
    press(on, Qt.Key.Key_Down, Qt.Key.Key_Space, Qt.Key.Key_Down, Qt.Key.Key_Space, Qt.Key.Key_Space)
    assert shown(on).ticked == [1]
    press(on, Qt.Key.Key_Space, Qt.Key.Key_Return)
    on.until(lambda: not on.controller.running.testing)
    assert not shown(on).isVisible()
    assert on.window.tests.text() == "assert double(5) == 10\nassert double(-3) == -6\n"
    run = on.controller.run
    assert run is not None
    assert [c.passed for _, c in sorted(run.candidates.items())] == [False, False, False, True]
    assert on.window.page.number == 4
    assert run.candidates[4].agreement == "agrees with 1 of 1 suggested test"  # the others are no suggestions any more
    on.window.tests.undo()
    assert on.window.tests.blank


def test_they_are_written_in_the_form_that_the_tests_have(on: Stage) -> None:
    tests = "from solution import double\n\n\ndef test_zero():\n    assert double(0) == 0\n"
    on.window.tests.replace_text(tests)
    suggest(on)
    on.do("suggest_tests")
    press(on, Qt.Key.Key_Space, Qt.Key.Key_Down, Qt.Key.Key_Space, Qt.Key.Key_Return)
    added = on.window.tests.text().removeprefix(tests)
    assert added.split() == (
        "def test_double_1(): assert double(2) == 4 def test_double_2(): assert double(5) == 10".split()  # noqa: SIM905
    )


def test_the_list_moves_nothing_and_stays_within_the_page(on: Stage) -> None:
    finished(on)
    parts = (on.window.page.tabs, on.window.page.code, on.window.prompt, on.window.status)
    before = [part.geometry() for part in parts]
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert [part.geometry() for part in parts] == before
    on.window.resize(on.window.width() + 60, on.window.height() + 40)
    QApplication.processEvents()
    assert on.window.page.rect().contains(shown(on).geometry())
    assert not shown(on).geometry().intersects(on.window.page.tabs.geometry())


def test_a_dismissed_list_comes_back_without_the_model(on: Stage) -> None:
    words = suggest(on).controller.suggesting.list.words
    on.do("suggest_tests")
    press(on, Qt.Key.Key_Escape)
    assert not shown(on).isVisible()
    assert on.window.focusWidget() is on.window.page.code
    on.do("suggest_tests")
    on.steps(1)
    assert shown(on).isVisible()
    assert shown(on).words == words
    assert len(asked(on)) == 1


def test_what_was_added_is_not_offered_again_until_it_is_taken_back(on: Stage) -> None:
    suggest(on)
    on.do("suggest_tests")
    press(on, Qt.Key.Key_Space, Qt.Key.Key_Return)
    on.until(lambda: not on.controller.running.testing)
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert [line.split(",")[0] for line in shown(on).words] == ["assert double(5) == 10", "assert double(-3) == -6"]
    press(on)
    on.do("suggest_tests")
    press(on, Qt.Key.Key_Escape)
    on.window.tests.undo()
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert len(shown(on).words) == 3
    assert len(asked(on)) == 1


def test_a_question_and_the_list_take_each_others_place(on: Stage) -> None:
    suggest(on)
    on.do("ask")
    on.until(lambda: on.controller.questions.strip.isVisible())
    assert not shown(on).isVisible()
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert not on.controller.questions.strip.isVisible()
    assert on.runner is not None
    seen = [(request.solution, given) for request in on.runner.observed for given in request.inputs]
    assert len(seen) == len(set(seen))  # observed once, also for what was suggested later


def test_an_accepted_test_answers_the_question_about_its_input(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(Script((answer(SQUARE, 1), answer(TIMES, 2))))
    suggest(with_tests(stage, written("assert double(3) == 6")))
    stage.do("suggest_tests")
    press(stage, Qt.Key.Key_Space, Qt.Key.Key_Return)
    stage.until(lambda: not stage.controller.running.testing)
    heard = said(stage)
    stage.do("ask")
    stage.until(lambda: bool(heard))
    assert heard[-1] == "2 candidates are left, and nothing more to ask: they agree on what can be asked."


# What ends it.


def test_stop_ends_what_the_model_writes(on: Stage) -> None:
    heard = said(writing(on))
    on.do("stop")
    assert heard == [sentences.STOPPED]
    assert not on.controller.suggesting.writing
    on.until(lambda: on.controller.loading.engine is not None and not on.controller.loading.engine._due)
    on.steps(3)
    assert not shown(on).isVisible()
    assert "writes tests" not in on.window.status.model_text
    assert why_not(on) == ""  # it can be asked for again


@pytest.mark.parametrize(("action", "count"), [("generate", 4), ("generate_more", 8)])
def test_generate_stops_it_first_and_begins(on: Stage, action: str, count: int) -> None:
    heard, before = said(writing(on)), on.controller.run
    on.do(action)
    assert sentences.OTHER_RUN in heard
    assert not on.controller.suggesting.writing
    on.finish()
    run = on.controller.run
    assert run is not None
    assert (run is before) == (action == "generate_more")
    assert [c.state for c in run.candidates.values()] == ["done"] * count
    on.steps(3)
    assert not shown(on).isVisible()


def test_a_run_that_goes_on_takes_the_list_away(on: Stage) -> None:
    suggest(on)
    on.do("generate_more")
    on.steps(1)
    assert not shown(on).isVisible()
    assert why_not(on) == "The run is still going on."
    on.finish()
    on.do("suggest_tests")
    on.until(lambda: shown(on).isVisible())
    assert shown(on).words[0].endswith("8 of 8 candidates agree")
    assert len(asked(on)) == 1


def test_loading_another_model_ends_it(on: Stage) -> None:
    heard = said(writing(on))
    on.controller.loading.load(ModelChoice("another"), quiet=True)
    assert heard == [sentences.OTHER_MODEL]
    assert why_not(on) == "The model is still loading."
    on.until(lambda: on.controller.loading.preloading is None)
    assert not shown(on).isVisible()


def test_an_error_of_the_engine_ends_it_with_its_sentence(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(Script((answer(SQUARE, 1), answer(TIMES, 2))))
    finished(with_tests(stage, replace(written(*ASSERTS), run_failure="The graphics card is lost.")))
    stage.do("suggest_tests")
    stage.until(lambda: stage.window.notice.sentence == "The graphics card is lost.")
    assert not shown(stage).isVisible()
    assert not stage.controller.suggesting.writing


# What is said instead.


def test_why_it_cannot_be_done(on: Stage) -> None:
    assert why_not(on) == "Generate some candidates first."
    on.generate()
    on.until(lambda: on.controller.run is not None)
    assert why_not(on) == "The run is still going on."
    on.finish()
    assert why_not(on) == ""
    on.controller.preferences.settings = replace(on.controller.preferences.settings, run_code=False)
    assert why_not(on) == "Running code is switched off in the settings."


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("assert double(1) == 99",), sentences.NONE_PASSED),
        (("I would rather not.",), sentences.NOTHING_READ.format(name="double")),
        (("assert double(open('a')) == 3",), sentences.NOTHING_READ.format(name="double")),
    ],
)
def test_nothing_that_could_be_offered(open_stage: Callable[..., Stage], lines: tuple[str, ...], sentence: str) -> None:
    stage = open_stage(Script((answer(SQUARE, 1), answer(TIMES, 2))))
    heard = said(finished(with_tests(stage, written(*lines))))
    stage.do("suggest_tests")
    stage.until(lambda: bool(heard))
    assert heard == [sentence]
    assert not shown(stage).isVisible()


@pytest.mark.parametrize(
    ("prompt", "code", "sentence"),
    [
        ("Write a class Box.", "class Box:\n    def put(self, x):\n        return x\n", sentences.FUNCTIONS_ONLY),
        ("Read n, print 2n.", "print(int(input()) * 2)\n", sentences.FUNCTIONS_ONLY),
        ("Write double(x).", "def double(x):\n    pass\n", sentences.NO_RESULT),
        ("Write.", "x = 1\n", "The candidates have no function or class in common, and read no input."),
    ],
)
def test_targets_that_no_test_is_suggested_for(
    open_stage: Callable[..., Stage], prompt: str, code: str, sentence: str
) -> None:
    stage = with_tests(open_stage(Script((ScriptedCandidate((f"```python\n{code}```",)),))), written(*ASSERTS))
    stage.write(prompt, "")
    heard = said(finished(stage, 2))
    stage.do("suggest_tests")
    stage.until(lambda: bool(heard))
    assert heard == [sentence]
    assert asked(stage) == []  # the model's time is not spent on it


@pytest.mark.parametrize("agrees", [True, False])
def test_without_a_sandbox_the_user_is_asked_before_the_model(open_stage: Callable[..., Stage], agrees: bool) -> None:
    stage = open_stage(Script((answer(SQUARE, 1), answer(TIMES, 2))))
    finished(with_tests(stage, written(*ASSERTS), sealed=False))
    stage.do("suggest_tests")
    stage.until(lambda: any(dialog.isVisible() for dialog in stage.window.findChildren(QDialog)))
    dialogs = [dialog for dialog in stage.window.findChildren(QDialog) if dialog.isVisible()]
    assert len(dialogs) == 1
    assert asked(stage) == []
    (dialogs[0].accept if agrees else dialogs[0].reject)()
    if agrees:
        stage.until(lambda: shown(stage).isVisible())
    else:
        stage.steps(5)
        assert asked(stage) == []
        assert not shown(stage).isVisible()
