"""Until one passes, in the window: the choice beside the numbers, what goes on by itself, the offers after a run."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QPushButton

from app.controllers import runs
from app.ui.actions import ACTIONS
from engine.contract import BasslineError, Load, ModelChoice
from engine.runner.report import Report, TestResult
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine, from_texts
from engine.session import ladder
from engine.session.arms import BATCH, Model
from engine.session.states import TestState
from tests.app.stage import PROMPT, Stage

RIGHT = "```python\ndef roman_to_int(s):\n    return s[i + 1]\n```"  # as the stage's runner reads it


def wrong(number: int) -> ScriptedCandidate:
    return ScriptedCandidate((f"```python\ndef roman_to_int(s):\n    return {number}\n```",))


@pytest.fixture
def late(open_stage: Callable[..., Stage]) -> Stage:
    """Only the twentieth candidate is right."""
    on = open_stage(Script((*map(wrong, range(19)), ScriptedCandidate((RIGHT,)))))
    on.write()
    return on


def offers(on: Stage) -> dict[str, QPushButton]:
    return {b.text(): b for b in on.window.notice.findChildren(QPushButton) if b.isVisible() and b.text()}


def finish(on: Stage) -> None:
    on.until(lambda: not on.controller.situation().busy)


def test_it_goes_on_until_one_passes(late: Stage) -> None:
    late.do("until_pass")
    late.do("generate")
    finish(late)
    run = late.controller.run
    assert run is not None
    assert [n for n, c in run.candidates.items() if c.passed] == [20]
    assert late.window.page.number == 20
    assert not late.window.notice.isVisible() or "None of" not in late.window.notice.sentence


def test_the_box_says_how_many_at_most_and_goes_back(on: Stage) -> None:
    on.window.bar.apply(replace(on.window.bar.settings(), candidates=5))
    on.do("until_pass")
    assert (on.window.bar.settings().candidates, on.window.bar.settings().until_pass) == (64, True)
    on.window.bar.apply(replace(on.window.bar.settings(), candidates=300))
    assert on.window.bar.settings().candidates == 300
    on.do("until_pass")
    assert (on.window.bar.settings().candidates, on.window.bar.settings().until_pass) == (5, False)


def test_the_most_candidates_end_it_and_going_on_is_offered(late: Stage) -> None:
    late.do("until_pass")
    late.window.bar.apply(replace(late.window.bar.settings(), candidates=10))
    late.do("generate")
    finish(late)
    run = late.controller.run
    assert run is not None
    assert len(run.candidates) == 10
    assert late.window.notice.sentence == "None of the 10 candidates passed the tests."
    offers(late)["Go on until one passes"].click()
    late.until(lambda: late.controller.running.busy)
    finish(late)
    assert late.controller.run is run
    assert run.candidates[20].passed


def test_without_tests_it_is_a_sentence(on: Stage) -> None:
    on.write(tests="")
    on.do("until_pass")
    on.do("generate")
    assert on.window.notice.sentence == "“Until one passes” needs tests; write some in the Tests tab."
    assert on.controller.run is None


def test_after_a_run_without_a_pass_the_ways_on_are_offered_in_order(late: Stage) -> None:
    late.controller.searching._task.done.disconnect()
    late.controller.searching._take_ladder([Model(ModelChoice("scripted"), "a"), Model(ModelChoice("big one"), "b")])
    late.generate(3)
    late.do("run_tests")
    finish(late)
    late.do("run_tests")
    late.settle()
    run = late.controller.run
    assert run is not None
    different = len({candidate.group for candidate in run.candidates.values()})
    assert different > 1
    fix = f"Fix the best {different}"
    assert list(offers(late)) == ["Go on until one passes", fix, "Use big one"]
    late.window.page.choose(1)
    offers(late)[fix].click()
    best = late.window.page.number
    finish(late)
    assert len(run.candidates) == 3 + BATCH
    repaired = [run.candidates[number].origin.of for number in range(4, 4 + BATCH)]
    assert repaired[0] == best
    assert len(set(repaired)) == different  # in one batch
    assert len(late.controller.running.driver.legs) == 2  # type: ignore[union-attr]


@pytest.fixture
def offered(late: Stage) -> Stage:
    """A run without a pass has ended, and the ways on are offered."""
    late.generate(3)
    finish(late)
    late.do("run_tests")
    late.wait_until(lambda: "Go on until one passes" in offers(late))
    return late


NO_MODEL = "No model was named; choose one with --model or in the model box."


@pytest.mark.parametrize("way", ["Go on until one passes", "Fix the best 3"])
def test_a_way_on_without_a_model_is_a_sentence(offered: Stage, way: str) -> None:
    offered.window.bar.choose_model("")
    offers(offered)[way].click()
    assert offered.window.notice.isVisible()
    assert offered.window.notice.sentence == NO_MODEL


def test_a_value_that_cannot_be_is_a_sentence_also_when_it_comes_while_the_disk_is_read(
    offered: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To go on waits until it is known which models are here."""
    searching, bar = offered.controller.searching, offered.window.bar
    searching._ladder = []
    monkeypatch.setattr(searching, "_look", lambda choice: None)
    offers(offered)["Go on until one passes"].click()
    assert not offered.window.notice.isVisible()
    bar._candidates.setText("many")
    searching._take_ladder([Model(ModelChoice("scripted"), "a")])
    assert offered.window.notice.isVisible()
    assert offered.window.notice.sentence == bar._candidates.complaint


def test_a_disk_that_cannot_be_read_is_a_sentence_for_who_waits_to_go_on(
    offered: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(choice: ModelChoice) -> list[Model]:
        raise BasslineError("The models' folder cannot be read.")

    monkeypatch.setattr(ladder, "ladder", broken)
    offered.controller.searching._look(ModelChoice("scripted"))  # nobody waits
    offered.wait_until(lambda: not offered.controller.searching._task.busy)
    assert "folder" not in offered.window.notice.sentence
    offered.controller.searching._ladder = []
    offers(offered)["Go on until one passes"].click()
    offered.wait_until(lambda: offered.window.notice.isVisible())
    assert offered.window.notice.sentence == "The models' folder cannot be read."


def test_nothing_is_offered_where_one_passed(on: Stage) -> None:
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    assert "Go on until one passes" not in offers(on)


def test_stop_ends_the_search(late: Stage) -> None:
    late.do("until_pass")
    late.do("generate")
    late.until(lambda: late.controller.run is not None)
    late.do("stop")
    finish(late)
    run = late.controller.run
    assert run is not None
    assert run.state == "stopped"
    assert not late.controller.running.busy
    assert late.window.prompt.text() == PROMPT


def asked_about_a_larger_model(open_stage: Callable[..., Stage], candidates: int = 60) -> Stage:
    """A search whose first parts have not passed, and whose question stands."""
    on = open_stage(Script(tuple(map(wrong, range(400)))))
    on.write()
    here = ModelChoice("scripted")
    on.controller.searching._task.done.disconnect()
    on.controller.searching._ladder = [Model(here, "a"), Model(replace(here, model="larger"), "b", load_s=0.1)]
    on.do("until_pass")
    on.window.bar.apply(replace(on.window.bar.settings(), candidates=candidates))
    on.do("generate")
    on.until(lambda: "is a larger model on this computer" in on.window.notice.sentence and on.window.notice.isVisible())
    on.settle()
    return on


def test_more_candidates_while_the_question_stands_answer_it_with_no(open_stage: Callable[..., Stage]) -> None:
    on = asked_about_a_larger_model(open_stage)
    run = on.controller.run
    assert run is not None
    assert on.controller.running.busy
    on.do("generate_more")
    assert on.controller.searching._decide is None
    finish(on)
    assert len(run.candidates) >= 60
    assert all(candidate.state == "done" for candidate in run.candidates.values())
    assert {leg.provenance.choice.model for leg in on.controller.running.driver.legs} == {"scripted"}  # type: ignore[union-attr]


def test_a_stop_takes_the_question_away(open_stage: Callable[..., Stage]) -> None:
    on = asked_about_a_larger_model(open_stage)
    run, searching = on.controller.run, on.controller.searching
    assert run is not None
    searching._offered = run, run.tests, len(run.candidates)  # at an earlier stop; nothing else takes its place
    on.do("stop")
    on.settle()
    assert not on.controller.running.busy
    assert searching._decide is None
    assert "Yes" not in offers(on)


@pytest.mark.parametrize("answer", ["Yes", "No", "Never"])
def test_a_larger_model_is_asked_about_once(open_stage: Callable[..., Stage], answer: str) -> None:
    on = open_stage(Script(tuple(map(wrong, range(400)))))
    on.write()
    loads: list[str] = []

    class Counting(ScriptedEngine):
        def submit(self, message: object) -> None:
            if isinstance(message, Load):
                loads.append(message.choice.model)
            super().submit(message)

    on.controller.loading.open_engine = lambda choice: Counting(on.script, on.clock)
    here = ModelChoice("scripted")
    on.controller.searching._task.done.disconnect()
    on.controller.searching._ladder = [Model(here, "a"), Model(replace(here, model="larger"), "b", load_s=0.1)]
    ends: list[object] = []
    on.controller.running.finished.connect(ends.append)
    on.do("until_pass")
    on.window.bar.apply(replace(on.window.bar.settings(), candidates=60))
    on.do("generate")
    on.until(lambda: "is a larger model on this computer" in on.window.notice.sentence and on.window.notice.isVisible())
    on.settle()
    offers(on)[answer].click()
    finish(on)
    assert ("larger" in loads) == (answer == "Yes")
    assert on.window.remembered("larger_models") == {"Yes": "yes", "No": "", "Never": "never"}[answer]
    run = on.controller.run
    assert run is not None
    assert len(run.candidates) == 60
    assert len(ends) == 1  # however often the engine had said its last word


def in_a_later_part(open_stage: Callable[..., Stage], *, passes: int = 100) -> tuple[Stage, list[str]]:
    """A search whose second part is being written, and the outcomes of each end that is told of it."""
    long = "x" * 200
    texts = [f"```python\ndef roman_to_int(s):\n    return {n}  # {long}\n```" for n in range(passes - 1)]
    on = open_stage(from_texts([*texts, RIGHT], chunk=20))
    on.write()
    ends: list[str] = []
    on.controller.running.finished.connect(lambda event: ends.append(event.outcome))
    on.do("until_pass")
    on.do("generate")
    on.until(lambda: (driver := on.controller.running.driver) is not None and len(driver.legs) > 1)
    driver = on.controller.running.driver
    assert driver is not None
    on.until(lambda: driver.run.state == "generating")
    return on, ends


def test_the_end_of_a_search_stopped_in_a_later_part_is_told_once_and_when_it_has_come(
    open_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "FORCE_MS", 50)
    on, ends = in_a_later_part(open_stage)
    on.do("stop")
    run = on.controller.run
    assert run is not None
    assert run.state == "stopping"
    assert ends == []
    assert "Go on until one passes" not in offers(on)
    on.wait_until(lambda: "Force stop" in offers(on))  # the clock stands: the engine is in the middle of a step
    finish(on)
    assert ends == ["stopped"]


def test_the_end_of_a_search_that_passes_in_a_later_part_is_told_once(open_stage: Callable[..., Stage]) -> None:
    on, ends = in_a_later_part(open_stage, passes=9)
    run = on.controller.run
    assert run is not None
    states: list[str] = []
    on.controller.running.finished.connect(lambda _: states.append(run.state))
    finish(on)
    assert any(candidate.passed for candidate in run.candidates.values())
    assert len(ends) == 1
    assert states == ["stopped"]


def test_a_larger_model_that_does_not_fit_begins_no_other_run(open_stage: Callable[..., Stage]) -> None:
    on = asked_about_a_larger_model(open_stage)
    large = replace(on.script, load_failure="Not enough memory.", failure_kind="out-of-memory")
    on.controller.loading.open_engine = lambda choice: ScriptedEngine(
        large if choice.model == "larger" else on.script, on.clock
    )
    run = on.controller.run
    assert run is not None
    offers(on)["Yes"].click()
    on.until(lambda: on.window.notice.isVisible() and on.window.notice.sentence == "Not enough memory.")
    assert on.controller.running.busy
    assert "Load anyway" not in offers(on)  # it would be said of the smaller one
    on.controller.generate()
    assert on.window.notice.sentence == "A run is going on; stop it first."
    finish(on)
    assert on.controller.run is run
    assert len(run.candidates) == 60


def test_steps_are_those_of_the_model_that_is_asked_and_of_nobody_who_wants_none(on: Stage) -> None:
    searching, here, other = on.controller.searching, ModelChoice("scripted"), ModelChoice("other")
    searching._ladder = [Model(here, "a"), Model(replace(here, model="larger"), "b")]
    assert searching._models(here) == searching._ladder
    assert searching._models(other) == [Model(other, "other")]
    on.window.remember("larger_models", "never")
    assert searching._models(here) == searching._ladder[:1]


@pytest.mark.parametrize("how", ["another message", "a choice"])
def test_a_question_is_answered_once_also_by_what_takes_its_place(on: Stage, how: str) -> None:
    answers: list[bool] = []
    on.controller.searching._ask("larger", answers.append)
    if how == "a choice":
        offers(on)["No"].click()
    on.window.notice.say("Something else.")
    on.window.notice.say("And more.")
    assert answers == [False]


def test_the_time_of_a_search_is_kept_until_its_end(late: Stage) -> None:
    clock = late.controller.running._clock
    late.do("until_pass")
    late.do("generate")
    late.until(lambda: late.controller.run is not None)
    assert clock.isActive()
    finish(late)
    assert not clock.isActive()
    late.do("until_pass")
    late.generate(1)
    late.until(lambda: late.controller.running.busy)
    assert not clock.isActive()


def test_going_on_is_offered_once_when_all_have_failed(late: Stage) -> None:
    late.generate(2)
    late.finish()
    run, searching, notice = late.controller.run, late.controller.searching, late.window.notice
    assert run is not None
    one, other = run.candidates.values()
    failed = Report("fail", "split", "assert f() == 1", (TestResult("1", "failed", "assert f() == 1"),))
    run.queue_test(one.number)
    run.record(one.number, failed, 1.0)
    searching._offer(run)
    assert not notice.isVisible()  # the other one has no verdict yet
    run.queue_test(other.number)
    run.record(other.number, replace(failed, verdict="pass", why="", tests=()), 1.0)
    searching._offer(run)
    assert not notice.isVisible()
    other.report, other.test_state = failed, TestState.FAILED
    searching._offer(run)
    assert notice.sentence == "None of the 2 candidates passed the tests."
    notice.say("Something else.")
    searching._offer(run)
    assert notice.sentence == "Something else."


def test_a_new_window_tests_candidates_as_they_finish(open_stage: Callable[..., Stage]) -> None:
    assert {action.id for action in ACTIONS if action.on} == {"test_as_finished", "ask_by_itself"}
    on = open_stage(as_finished=True)
    on.write()
    on.generate(2)
    on.finish()
    on.settle()
    assert on.controller.run is not None
    assert [c.test_state for c in on.controller.run.candidates.values()] == ["passed", "failed"]


def test_f8_without_a_pass_says_that_there_is_none(late: Stage) -> None:
    late.generate(2)
    late.finish()
    late.do("next_passing")
    assert late.window.status.model_text == "No candidate has passed its tests yet."
