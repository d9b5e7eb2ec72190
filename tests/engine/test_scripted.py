"""The scripted engine obeys the contract: whatever happens, each run ends once, and every candidate before it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Close,
    Closed,
    Event,
    Generate,
    Load,
    LoadFailed,
    Loading,
    ModelChoice,
    PromptProgress,
    Ready,
    Request,
    RunFinished,
    RunStarted,
    Sampling,
    StepDone,
    TextAdded,
)
from engine.scripted import HandClock, Script, ScriptedCandidate, ScriptedEngine, from_texts

TEXTS = ("one two three", "four five six seven eight", "nine")
Reaction = Callable[[Event, ScriptedEngine], None]


class SteppingClock:
    """Each sleep passes at once."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def play(script: Script, *runs: Generate, react: Reaction | None = None) -> list[Event]:
    """Every event of these runs, then Close; ``react`` may send messages at any event."""
    engine = ScriptedEngine(script, SteppingClock())
    for run in runs:
        engine.submit(run)
    events: list[Event] = []
    open_runs = {run.run for run in runs}

    def emit(event: Event) -> None:
        events.append(event)
        if react:
            react(event, engine)
        if isinstance(event, RunFinished):
            open_runs.discard(event.run)
            if not open_runs:
                engine.submit(Close())

    engine.run(emit)
    assert events[-1] == Closed()
    return events


def a_run(name: str = "r", n: int = 3, **options: Any) -> Generate:
    return Generate(name, Request("write it", seed=5, candidates=n, **options))


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def check_contract(events: list[Event], run: str = "r") -> RunFinished:
    """One RunStarted first, one RunFinished last, one last word per candidate, and text that adds up to it."""
    own = [event for event in events if getattr(event, "run", None) == run]
    assert [type(event) for event in own].count(RunStarted) == 1
    assert isinstance(own[0], RunStarted)
    assert [type(event) for event in own].count(RunFinished) == 1
    assert isinstance(own[-1], RunFinished)
    finished = of(CandidateFinished, own)
    assert len({event.candidate for event in finished}) == len(finished)
    assert {*own[0].candidates, *(event.candidate for event in of(TextAdded, own))} == {e.candidate for e in finished}
    for event in finished:
        mine = [e for e in own if getattr(e, "candidate", None) == event.candidate]
        assert mine[-1] is event
        assert "".join(e.text for e in of(TextAdded, mine)) == event.text
    times = [event.at_s for event in own if hasattr(event, "at_s")]
    assert times == sorted(times)
    return own[-1]


def ends(events: list[Event]) -> dict[int, tuple[str, str]]:
    return {event.candidate: (event.state, event.stop_reason) for event in of(CandidateFinished, events)}


def once(kind: type, message: Any) -> Reaction:
    """Send ``message`` at the first event of that kind."""
    sent: list[Any] = []

    def react(event: Event, engine: ScriptedEngine) -> None:
        if isinstance(event, kind) and not sent:
            sent.append(message)
            engine.submit(message)

    return react


def test_a_run_to_its_end() -> None:
    events = play(from_texts(TEXTS, chunk=4), a_run(n=4))
    last = check_contract(events)
    assert (last.outcome, last.reason) == ("finished", "")
    assert ends(events) == dict.fromkeys((1, 2, 3, 4), ("done", "stop"))
    assert {e.candidate: e.text for e in of(CandidateFinished, events)} == dict(enumerate([*TEXTS, TEXTS[0]], 1))
    assert [(e.done, e.total) for e in of(PromptProgress, events)] == [(1, 2), (2, 2)]
    assert last.metrics is not None
    assert last.metrics.steps == len(of(StepDone, events)) == 7
    assert last.metrics.time_to_first_finished_s == min(e.at_s for e in of(CandidateFinished, events))
    assert of(StepDone, events)[-1].active == 0


def test_cancel_one_leaves_the_others() -> None:
    events = play(from_texts(TEXTS), a_run(), react=once(StepDone, Cancel("r", 2)))
    assert check_contract(events).outcome == "finished"
    assert ends(events) == {1: ("done", "stop"), 2: ("stopped", "cancelled"), 3: ("done", "stop")}


@pytest.mark.parametrize("message", [Cancel("r"), Close()])
@pytest.mark.parametrize("at", [RunStarted, PromptProgress, StepDone, CandidateFinished])
def test_stop_at_any_moment(message: Any, at: type) -> None:
    events = play(from_texts(TEXTS), a_run(), react=once(at, message))
    last = check_contract(events)
    assert last.outcome == "stopped"
    assert last.metrics is not None
    assert set(ends(events).values()) <= {("done", "stop"), ("stopped", "cancelled")}
    assert ("stopped", "cancelled") in ends(events).values()


def test_cancelling_what_is_not_there_changes_nothing() -> None:
    def react(event: Event, engine: ScriptedEngine) -> None:
        if isinstance(event, StepDone):
            for message in (Cancel("other"), Cancel("other", 1), Cancel("r", 99)):
                engine.submit(message)

    assert check_contract(play(from_texts(TEXTS), a_run(), react=react)).outcome == "finished"


def test_the_budget_cuts_what_is_not_finished() -> None:
    events = play(from_texts(TEXTS, step_s=1.0), a_run(time_budget_s=5.5))
    assert check_contract(events).outcome == "budget"
    assert ends(events) == {1: ("cut", "budget"), 2: ("cut", "budget"), 3: ("done", "stop")}


def test_the_length_cuts() -> None:
    events = play(from_texts(TEXTS), a_run(sampling=Sampling(max_tokens=2)))
    assert check_contract(events).outcome == "finished"
    assert ends(events) == {1: ("cut", "length"), 2: ("cut", "length"), 3: ("done", "stop")}


def test_a_failing_candidate_and_a_failing_run() -> None:
    script = Script((ScriptedCandidate(("a", "b"), fails=True), ScriptedCandidate(("c",))))
    events = play(script, a_run(n=2))
    assert check_contract(events).outcome == "finished"
    assert ends(events) == {1: ("failed", "error"), 2: ("done", "stop")}

    events = play(from_texts(TEXTS, run_failure="Out of memory."), a_run())
    last = check_contract(events)
    assert (last.outcome, last.reason) == ("failed", "Out of memory.")
    assert ends(events) == {1: ("failed", "error"), 2: ("failed", "error"), 3: ("done", "stop")}


def test_more_candidates_join_a_run() -> None:
    events = play(from_texts(TEXTS), a_run(n=1), react=once(StepDone, Add("r", 2)))
    assert check_contract(events).outcome == "finished"
    assert set(ends(events)) == {1, 2, 3}


def test_more_candidates_have_numbers_behind_those_that_were_asked_for() -> None:
    events = play(from_texts(TEXTS), a_run(n=2, first_candidate=9), react=once(StepDone, Add("r", 2)))
    assert set(ends(events)) == {9, 10, 11, 12}


def test_runs_wait_their_turn() -> None:
    events = play(from_texts(TEXTS), a_run("a"), a_run("b"), a_run("c"))
    for run in "abc":
        assert check_contract(events, run).outcome == "finished"
    assert [event.run for event in of(RunFinished, events)] == ["a", "b", "c"]


def test_a_candidate_without_text() -> None:
    events = play(Script((ScriptedCandidate(()),)), a_run(n=2))
    last = check_contract(events)
    assert last.metrics is not None
    assert (last.outcome, last.metrics.time_to_first_token_s, last.metrics.ms_per_token_mean) == (
        "finished",
        None,
        None,
    )
    assert ends(events) == {1: ("done", "stop"), 2: ("done", "stop")}


def load(script: Script, react: Reaction) -> list[Event]:
    engine = ScriptedEngine(script, SteppingClock())
    engine.submit(Load(ModelChoice()))
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        react(event, engine)
        if isinstance(event, Ready | LoadFailed):
            engine.submit(Close())

    engine.run(emit)
    return events


def test_loading() -> None:
    def nothing(event: Event, engine: ScriptedEngine) -> None: ...

    events = load(from_texts(TEXTS, model="m"), nothing)
    assert [type(event) for event in events[-2:]] == [Ready, Closed]
    assert {event.stage for event in of(Loading, events)} == {"weights", "warm-up"}
    assert load(from_texts(TEXTS, load_failure="No."), nothing)[-2] == LoadFailed("No.")


@pytest.mark.parametrize("message", [Cancel(), Close()])
def test_a_load_can_be_stopped(message: Any) -> None:
    events = load(from_texts(TEXTS), once(Loading, message))
    assert [type(event) for event in events] == [Loading, LoadFailed, Closed]
    assert events[1].cancelled


def test_the_hand_driven_clock_moves_only_by_hand() -> None:
    clock, events = HandClock(), []
    arrived = threading.Semaphore(0)
    engine = ScriptedEngine(from_texts(TEXTS, step_s=1.0, prompt_steps=1), clock)

    def emit(event: Event) -> None:
        events.append(event)
        arrived.release()

    thread = threading.Thread(target=engine.run, args=(emit,))
    thread.start()
    engine.submit(a_run(n=1))
    assert arrived.acquire(timeout=10)  # RunStarted; the engine now sleeps until somebody moves the clock
    assert [type(event) for event in events] == [RunStarted]
    assert not arrived.acquire(timeout=0.05)
    while not arrived.acquire(timeout=0.05):
        clock.advance(0.5)  # more than once if the engine was not asleep yet
    assert [type(event) for event in events] == [RunStarted, PromptProgress]
    engine.submit(Close())
    while thread.is_alive():
        clock.advance(0.5)
        thread.join(timeout=0.05)
    assert check_contract(events).outcome == "stopped"
