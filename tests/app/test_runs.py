"""Models and runs: ready ahead of time, more of the same, an early end, and ways out when things go wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QPushButton

from app.controllers import runs
from app.controllers.memory_fit import MemoryFit, memory_fit
from app.item_models.model_rows import size
from engine.contract import BadRequest, BasslineError, Cancel, Generate, Load, Message, ModelChoice
from engine.models import hub, sources
from engine.models.names import find_entry
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine, from_texts
from tests.app.stage import RehearsedRunner, Stage, StageClock


def generating(on: Stage) -> bool:
    return on.controller.run is not None and on.controller.run.state == "generating"


def choices(on: Stage) -> dict[str, QPushButton]:
    return {b.text(): b for b in on.window.notice.findChildren(QPushButton) if b.isVisible()}


class Picky(ScriptedEngine):
    """Loads what is called "good…", and remembers what it was asked."""

    def __init__(self, clock: StageClock):
        super().__init__(from_texts(["x = 1"], load_stages=(("weights", 2),)), clock)
        self.heard: list[Message] = []

    def submit(self, message: Message) -> None:
        self.heard.append(message)
        super().submit(message)

    def _load(self, emit: object) -> None:
        choice = [message for message in self.heard if isinstance(message, Load)][-1].choice
        name, failure = choice.model, "" if choice.model.startswith("good") else f"No model is called {choice.model!r}."
        if choice.offline and "far away" in name:
            failure = f"{name} is not on this machine yet."
        self.script = replace(self.script, load_failure=failure)
        self.script = replace(self.script, model=name)
        super()._load(emit)


@pytest.fixture
def picky(open_stage: Callable[..., Stage]) -> tuple[Stage, list[Picky]]:
    on, engines = open_stage(), list[Picky]()

    def open_one(choice: ModelChoice) -> Picky:
        engines.append(Picky(on.clock))
        return engines[-1]

    on.controller.loading.open_engine = open_one
    on.write()
    return on, engines


def preload(on: Stage, model: str) -> None:
    on.window.bar.choose_model(model)
    on.window.bar.model_chosen.emit()


# Ahead of time.


def test_the_model_used_last_loads_in_the_background_and_generate_answers_at_once(
    picky: tuple[Stage, list[Picky]],
) -> None:
    on, engines = picky
    on.window.remember("model", "good one")
    on.controller.preparing.preload()
    on.settle()
    assert on.window.status.model_text.startswith("Loading good one in the background")
    assert not on.window.loading.isVisible()
    assert on.window.actions_by_id["generate"].isEnabled()
    assert not on.controller.situation().busy  # closing would not ask
    on.until(lambda: on.controller.ready is not None)
    assert [m.choice.offline for m in engines[0].heard if isinstance(m, Load)] == [True]
    on.generate_with("good one", 1)
    on.finish()
    assert sum(isinstance(message, Load) for message in engines[0].heard) == 1


def test_generate_during_a_preload_joins_it(picky: tuple[Stage, list[Picky]]) -> None:
    on, engines = picky
    preload(on, "good one")
    on.settle()
    on.generate_with("good one", 1)
    assert on.window.loading.isVisible()
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"
    assert sum(isinstance(message, Load) for message in engines[0].heard) == 1


def test_a_preload_that_lacks_the_network_is_tried_again_once_somebody_asks(picky: tuple[Stage, list[Picky]]) -> None:
    on, engines = picky
    preload(on, "good but far away")
    on.settle()
    on.generate_with("good but far away", 1)
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"
    assert [m.choice.offline for m in engines[0].heard if isinstance(m, Load)] == [True, False]
    assert not on.window.notice.isVisible()


def test_a_preload_that_fails_is_silent(picky: tuple[Stage, list[Picky]]) -> None:
    on, _ = picky
    preload(on, "bad")
    on.until(lambda: on.controller.loading.preloading is None)
    assert not on.window.notice.isVisible()
    assert on.window.status.model_text == "No model loaded"


def test_a_preload_can_be_stopped(picky: tuple[Stage, list[Picky]]) -> None:
    on, _ = picky
    preload(on, "good one")
    on.settle()
    assert on.window.actions_by_id["stop"].isEnabled()
    assert on.window.actions_by_id["stop"].toolTip().startswith("Stop loading the model (")
    on.do("stop")
    on.until(lambda: on.controller.loading.preloading is None)
    assert on.controller.ready is None
    assert not on.window.notice.isVisible()


def test_a_mistyped_model_never_drops_the_one_that_is_loaded(picky: tuple[Stage, list[Picky]]) -> None:
    on, _ = picky
    on.generate_with("good one", 1)
    on.finish()
    on.generate_with("goood", 1)
    on.until(lambda: on.window.notice.isVisible())
    assert on.window.notice.sentence == "No model is called 'goood'."
    on.until(lambda: on.controller.ready is not None)
    assert on.controller.ready is not None
    assert on.controller.ready.model == "good one"
    on.generate_with("good one", 2)
    assert generating(on) or not on.window.loading.isVisible()
    on.finish()


def test_another_model_gives_up_the_preload(picky: tuple[Stage, list[Picky]]) -> None:
    on, engines = picky
    preload(on, "good one")
    on.settle()
    on.generate_with("good two", 1)
    on.finish()
    assert on.controller.ready is not None
    assert on.controller.ready.model == "good two"
    assert any(isinstance(message, Cancel) for message in engines[0].heard)


# More, fewer.


def test_more_candidates_join_a_run_that_goes_on(on: Stage) -> None:
    on.generate(2)
    on.until(lambda: generating(on))
    on.do("generate_more")
    on.finish()
    assert on.controller.run is not None
    assert sorted(on.controller.run.candidates) == [1, 2, 3, 4]
    assert all(candidate.state == "done" for candidate in on.controller.run.candidates.values())
    assert on.window.page.tabs.count() == 4


def test_further_candidates_wait_in_view_and_a_stop_ends_them(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: generating(on))
    on.do("generate_more")  # the clock stands: the engine has not taken them up
    run, rows = on.controller.run, on.window.candidates
    assert run is not None
    assert rows.rowCount() == 16
    assert {run.candidates[n].state for n in range(9, 17)} == {"queued"}
    assert "of 16 finished" in on.window.windowTitle()
    on.do("stop")
    on.finish()
    assert {run.candidates[n].state for n in range(9, 17)} == {"stopped"}
    assert [rows.badge(row).word for row in range(8, 16)] == ["stopped"] * 8


def test_more_candidates_join_a_run_that_has_ended(on: Stage) -> None:
    on.generate(2)
    on.finish()
    run = on.controller.run
    assert run is not None
    before = [run.candidates[n].text for n in (1, 2)]
    on.do("generate_more")
    on.finish()
    assert on.controller.run is run
    assert [run.candidates[n].text for n in (1, 2)] == before
    assert sorted(run.candidates) == [1, 2, 3, 4]
    assert run.candidates[3].state == "done"


def test_more_from_an_engine_that_fails_leaves_the_old_candidates(on: Stage) -> None:
    """Whatever becomes of the further ones, what was there stays as it was."""
    on.generate(2)
    on.finish()
    run = on.controller.run
    assert run is not None
    before = [run.candidates[n].text for n in (1, 2)]
    on.engines[0].script = replace(on.script, run_failure="The engine broke.")
    on.do("generate_more")
    on.finish()
    assert on.window.notice.sentence == "The engine broke."
    assert [(run.candidates[n].state, run.candidates[n].text) for n in (1, 2)] == [("done", text) for text in before]
    assert {run.candidates[n].state for n in (3, 4)} == {"failed"}
    on.do("copy")
    assert on.window.actions_by_id["generate"].isEnabled()


def test_more_than_may_be_asked_for_loads_no_model(on: Stage) -> None:
    on.generate(2)
    on.finish()
    with pytest.raises(BadRequest):
        on.controller.running.more(100_000, ModelChoice("scripted", draft="another"))
    assert not on.controller.loading.busy


def test_one_candidate_can_be_stopped(on: Stage) -> None:
    on.generate(3)
    on.until(lambda: generating(on))
    on.window.page.choose(2)
    on.do("cancel_candidate")
    on.finish()
    assert on.controller.run is not None
    assert [c.state for c in on.controller.run.candidates.values()] == ["done", "stopped", "done"]
    assert on.window.actions_by_id["cancel_candidate"].toolTip() == "This candidate is not running."


def test_stop_at_first_pass_ends_the_run_and_shows_the_one_that_passed(open_stage: Callable[..., Stage]) -> None:
    wrong, right = ScriptedCandidate(("x = 1",)), ScriptedCandidate(("x = i + 1",))
    on = open_stage(Script((ScriptedCandidate(tuple("y" * 400)), wrong, right)))
    on.write()
    on.do("stop_at_first_pass")
    on.generate(3)
    on.finish()
    run = on.controller.run
    assert run is not None
    assert run.outcome == "stopped"
    assert [c.state for c in run.candidates.values()] == ["stopped", "done", "done"]
    assert on.window.page.number == 3
    assert on.window.status.model_text == "Candidate 3 passed; the others were stopped."
    assert run.candidates[1].report is None  # what was cut off is not tested


def test_a_time_budget_cuts_what_is_not_finished(on: Stage) -> None:
    on.window.bar.apply(replace(on.window.bar.settings(), time_budget_s=0.5))
    on.generate(2)
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "budget"
    assert "cut" in {candidate.state for candidate in on.controller.run.candidates.values()}


# When things go wrong.


def test_an_engine_that_does_not_stop_can_be_left_behind(
    open_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "FORCE_MS", 50)
    on = open_stage()
    on.write()
    on.generate(3)
    on.until(lambda: generating(on))
    on.do("stop")
    on.wait_until(lambda: "Force stop" in choices(on))  # the clock stands: the engine is in the middle of a step
    assert on.window.status.text.startswith("Stopping")
    choices(on)["Force stop"].click()
    run = on.controller.run
    assert run is not None
    assert run.state == "stopped"
    assert all(candidate.ended for candidate in run.candidates.values())
    assert on.window.actions_by_id["generate"].isEnabled()
    on.do("generate")
    on.finish()
    assert on.controller.run is not run
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"
    assert len(on.engines) == 2


def test_stop_again_does_not_put_off_the_stop_by_force(on: Stage) -> None:
    on.generate(3)
    on.until(lambda: generating(on))
    running = on.controller.running
    running.stop()
    running._force_timer.setInterval(1000)
    before = running._force_timer.interval()
    running.stop()
    assert running._force_timer.isActive()
    assert running._force_timer.interval() == before
    on.finish()
    assert not running._force_timer.isActive()


def unopened(on: Stage) -> None:
    def fail(answer: object) -> RehearsedRunner:
        raise BasslineError("There is no runner here.")

    on.controller.runner._open_runner = fail


def test_a_runner_that_does_not_open_leaves_nobody_in_the_queue(on: Stage) -> None:
    unopened(on)
    on.generate(2)
    on.finish()
    on.do("run_tests")
    assert on.window.notice.sentence == "There is no runner here."
    run = on.controller.run
    assert run is not None
    assert [candidate.test_state for candidate in run.candidates.values()] == ["not run", "not run"]
    assert not on.controller.running.testing


def test_without_a_runner_what_was_cut_off_is_still_written(on: Stage) -> None:
    """What has ended is to be tested first, and that fails."""
    on.generate(6)
    on.until(lambda: on.controller.run is not None and any(c.ended for c in on.controller.run.candidates.values()))
    on.do("stop")
    on.finish()
    run = on.controller.run
    assert run is not None
    assert any(candidate.state == "stopped" for candidate in run.candidates.values())
    unopened(on)
    on.window.actions_by_id["test_as_finished"].setChecked(True)
    on.controller.running.go_on(on.window.bar.settings().choice)
    on.finish()
    assert on.window.notice.sentence == "There is no runner here."
    assert [candidate.state for candidate in run.candidates.values()] == ["done"] * 6
    assert [candidate.test_state for candidate in run.candidates.values()] == ["not run"] * 6


def test_without_a_runner_a_search_ends_with_what_it_has_asked_for(on: Stage) -> None:
    """No candidate would get a verdict, so no more of them are asked for."""
    unopened(on)
    said: list[str] = []
    on.controller.runner.failed.connect(said.append)
    on.do("until_pass")
    on.do("generate")
    on.until(lambda: on.controller.run is not None)
    on.until(lambda: not on.controller.situation().busy)
    run = on.controller.run
    assert run is not None
    assert said == ["There is no runner here."]
    assert run.outcome == "finished"
    assert len(run.candidates) < 64
    assert all(candidate.state == "done" for candidate in run.candidates.values())


def test_a_stop_while_models_load_takes_back_what_was_to_begin(picky: tuple[Stage, list[Picky]]) -> None:
    on, _ = picky
    preload(on, "good one")
    on.settle()
    on.generate_with("good one", 1)
    assert on.controller.running._waiting is not None
    on.controller.running.stop()
    on.until(lambda: on.controller.ready is not None)
    assert on.controller.run is None


def test_what_waited_for_a_model_that_failed_does_not_begin_with_another(picky: tuple[Stage, list[Picky]]) -> None:
    on, _ = picky
    on.generate_with("bad", 1)
    on.finish()
    on.controller.loading.load(ModelChoice("good one"))
    on.until(lambda: on.controller.ready is not None)
    on.settle()
    assert on.controller.run is None


def out_of_memory(open_stage: Callable[..., Stage], draft: str = "") -> Stage:
    script = from_texts(["x = 1" * 9], chunk=4, run_failure="Not enough memory.", failure_kind="out-of-memory")
    on = open_stage(script)
    on.write()
    on.window.bar.choose_draft(draft)
    on.generate(8)
    on.finish()
    return on


def test_out_of_memory_offers_ways_out(open_stage: Callable[..., Stage]) -> None:
    on = out_of_memory(open_stage)
    assert on.window.notice.sentence == "Not enough memory."
    assert list(choices(on)) == ["4 candidates", "256 tokens", "Smaller model"]
    on.engines[0].script = replace(on.engines[0].script, run_failure="")
    choices(on)["4 candidates"].click()
    on.finish()
    assert on.controller.run is not None
    assert len(on.controller.run.candidates) == 4
    assert on.controller.run.outcome == "finished"
    assert on.window.bar.settings().candidates == 4


def test_out_of_memory_with_a_draft_offers_to_leave_it_out(open_stage: Callable[..., Stage]) -> None:
    on = out_of_memory(open_stage, draft="smollm2-135m")
    assert list(choices(on)) == ["4 candidates", "256 tokens", "No draft model", "Smaller model"]
    choices(on)["No draft model"].click()
    on.finish()
    assert on.window.bar.settings().draft == ""


def test_a_full_disk_leads_to_the_models_that_fill_it(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x"], load_failure="The disk is full; 77 MB are missing.", failure_kind="disk-full"))
    on.write()
    on.generate(1)
    on.until(lambda: on.window.notice.isVisible())
    assert list(choices(on)) == ["Models"]
    choices(on)["Models"].click()
    dialog = on.window.findChild(QDialog)
    assert dialog is not None
    assert dialog.windowTitle() == "Models"
    dialog.close()


def test_drafts_that_do_not_pay_are_told_and_can_be_switched_off(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x = 1"], speedup=0.8))
    on.write()
    on.generate(2)
    on.finish()
    assert "0.8x regular decoding" in on.window.status.text
    offer = next(b for b in on.window.status.findChildren(QPushButton) if b.isVisible())
    assert offer.text() == "Switch drafts off"
    assert offer.toolTip() == "Drafts slowed this run down: 0.80x the speed of regular decoding."
    offer.click()
    assert on.window.bar.settings().speculation.drafter == "none"
    assert not offer.isVisible()


def test_drafts_that_pay_are_not_questioned(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x = 1"], speedup=1.9))
    on.write()
    on.generate(2)
    on.finish()
    assert on.window.status.text.endswith("drafts accepted 75 %   |   1.9x regular decoding   |   batch size 2")
    assert not any(b.isVisible() for b in on.window.status.findChildren(QPushButton))


def test_a_request_reaches_the_engine_as_the_bar_says(picky: tuple[Stage, list[Picky]]) -> None:
    on, engines = picky
    on.window.bar.apply(replace(on.window.bar.settings(), goal="first", width=3, system="Be brief."))
    on.generate_with("good one", 2)
    on.finish()
    request = next(m.request for m in engines[0].heard if isinstance(m, Generate))
    assert (request.goal, request.width, request.system, request.candidates) == ("first", 3, "Be brief.", 2)


@pytest.mark.parametrize(("tests", "goal"), [("assert True", "first"), ("", "all")])
def test_tests_make_the_first_right_one_the_goal(picky: tuple[Stage, list[Picky]], tests: str, goal: str) -> None:
    on, engines = picky
    on.window.tests.replace_text(tests)
    on.generate_with("good one", 2)
    on.finish()
    assert next(m.request for m in engines[0].heard if isinstance(m, Generate)).goal == goal


# Fit.


def test_fit_is_said_before_anything_is_loaded(on: Stage) -> None:
    on.window.bar.choose_model("default")
    on.window.bar.model_chosen.emit()
    on.window.bar.show_fit("")
    on.controller.loading.cancel()
    on.controller.fitting._look()
    on.until(lambda: on.controller.loading.preloading is None)
    on.controller.fitting.close()
    found = memory_fit(ModelChoice(), 8)
    assert "GB free" in found.words
    on.window.bar.show_fit("Does not fit (9.1 of 4.0 GB free)", fits=False)
    assert on.window.bar._fit.property("tone") == "warning"


def test_what_is_to_be_fetched_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    monkeypatch.setattr(hub, "cached_repository", lambda *_: None)
    default = find_entry("default")
    assert default is not None
    assert default.file is not None
    assert memory_fit(ModelChoice(), 8).words.startswith(f"{size(default.file.bytes)} to fetch; ")
    place = sources.place(default.file)
    place.parent.mkdir(parents=True)
    with place.open("wb") as file:
        file.truncate(default.file.bytes)
    assert "to fetch" not in memory_fit(ModelChoice(), 8).words


def test_no_such_model_has_no_fit(tmp_path: Path) -> None:
    with pytest.raises(BasslineError):
        memory_fit(ModelChoice("no-such-model"), 8)
    assert MemoryFit().words == ""
