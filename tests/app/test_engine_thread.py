"""What crosses the thread: in order, in few pieces, and never by a signal per token."""

import queue
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QObject, QThread, Signal, Slot
from pytestqt.qtbot import QtBot

from app.system.engine_thread import EngineFailure, EngineThread, EventBatch, Inbox
from engine.contract import (
    BadRequest,
    CandidateFinished,
    Closed,
    Emit,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    ModelChoice,
    PromptProgress,
    Ready,
    Request,
    RunFinished,
    RunStarted,
    StepDone,
    TextAdded,
)
from engine.scripted import ScriptedEngine, from_texts
from engine.session.run import Run

STEP = StepDone("r", 1, 1, 0, 0, 1, 0.1)


def end(number: int) -> CandidateFinished:
    return CandidateFinished("r", number, "done", "stop", "", 1, 0, 0, None, 0.1)


def test_text_that_waits_is_one_piece_and_never_passes_another_event() -> None:
    inbox = Inbox()
    for tokens in range(1, 101):
        inbox.put(TextAdded("r", 1, "a", tokens, tokens / 10))
        inbox.put(TextAdded("r", 2, "b", tokens, tokens / 10))
        inbox.put(StepDone("r", tokens, 2 * tokens, 0, 0, 2, tokens / 10))
    inbox.put(end(1))
    inbox.put(TextAdded("r", 2, "c", 101, 10.1))
    inbox.put(TextAdded("s", 2, "d", 1, 0.1))
    assert list(inbox.take()) == [
        (
            TextAdded("r", 1, "a", 1, 0.1),
            TextAdded("r", 2, "b", 1, 0.1),
            TextAdded("r", 1, "a" * 99, 100, 10.0),
            TextAdded("r", 2, "b" * 99, 100, 10.0),
            StepDone("r", 100, 200, 0, 0, 2, 10.0),
        ),
        (end(1),),
        (TextAdded("r", 2, "c", 101, 10.1),),
        (TextAdded("s", 2, "d", 1, 0.1),),
    ]
    assert len(inbox) == 0


@st.composite
def runs(draw: st.DrawFn) -> list[Event | None]:
    """What an engine says of three candidates, in any order that the contract allows; None where a tick falls."""
    said: list[Event | None] = [RunStarted("r", 4, (1, 2, 3), 1)]
    tokens, open_ones, steps = dict.fromkeys((1, 2, 3), 0), [1, 2, 3], 0
    for at in range(draw(st.integers(0, 40))):
        what, at_s = draw(st.sampled_from("tttttssep ")), at / 10
        if what == " ":
            said.append(None)
        elif what == "p":
            said.append(PromptProgress("r", at, 40))
        elif what == "s":
            steps += 1
            said.append(StepDone("r", steps, sum(tokens.values()), 2 * steps, steps, len(open_ones), at_s))
        elif open_ones:
            number = draw(st.sampled_from(open_ones))
            tokens[number] += draw(st.integers(1, 5))
            if what == "t":
                text = draw(st.sampled_from(["", "a", "é\r", "\n```\n"]))
                said.append(TextAdded("r", number, text, tokens[number], at_s))
            else:
                open_ones.remove(number)
                text = draw(st.sampled_from(["x = 1", "```\nx = 1\n```", ""]))
                said.append(CandidateFinished("r", number, "done", "stop", text, tokens[number], 2, 1, -0.5, at_s))
    return [*said, *draw(st.sampled_from([[], [RunFinished("r", "finished")]]))]


def state(run: Run) -> dict[str, object]:
    """All there is to know of it; how many pieces a growing text is in makes no difference."""
    candidates = [{**vars(c), "_pieces": c.text} for c in run.candidates.values()]
    return {**vars(run), "candidates": candidates, "ranking": run.ranking()}


@settings(deadline=None)
@given(runs())
def test_a_run_comes_to_the_same_by_what_is_taken_as_by_every_word(said: list[Event | None]) -> None:
    request = Request("p", 1, candidates=3)
    one_by_one, taken, inbox = Run("r", request), Run("r", request), Inbox()
    for event in [*said, None]:
        if event is not None:
            inbox.put(event)
            one_by_one.apply(event)
            continue
        for together in inbox.take():
            assert isinstance(together, tuple)
            for one in together:
                taken.apply(one)
        assert state(taken) == state(one_by_one)


def test_taking_stops_when_its_time_is_over_and_loses_nothing() -> None:
    inbox = Inbox()
    for number in range(5):
        inbox.put(end(number))
    first = list(inbox.take(budget_s=-1))
    assert first == [(end(0),)]
    assert list(inbox.take()) == [(end(number),) for number in range(1, 5)]


def test_no_event_is_lost_between_two_threads() -> None:
    inbox, seen = Inbox(), list[EventBatch | EngineFailure]()
    writer = threading.Thread(target=lambda: [inbox.put(TextAdded("r", n % 3, "x", n, 0.0)) for n in range(20_000)])
    writer.start()
    while writer.is_alive() or len(inbox):
        seen += list(inbox.take())
    writer.join()
    texts = [event.text for said in seen if isinstance(said, tuple) for event in said if isinstance(event, TextAdded)]
    assert sum(map(len, texts)) == 20_000


class Listener(QObject):
    """Remembers what was said, and on which thread."""

    def __init__(self, thread: EngineThread):
        super().__init__()
        self.events: list[Event] = []
        self.threads: set[QThread] = set()
        thread.received.connect(self.read_line)

    @Slot(tuple)
    def read_line(self, events: EventBatch) -> None:
        self.events += events
        self.threads.add(QThread.currentThread())


def test_events_arrive_on_the_main_thread_and_the_timer_rests(qtbot: QtBot) -> None:
    thread = EngineThread(lambda: ScriptedEngine(from_texts(["x = 1"], step_s=0.001)))
    listener = Listener(thread)
    thread.submit(Load(ModelChoice("scripted")))
    thread.submit(Generate("r", Request("p", 1, candidates=3)))
    qtbot.waitUntil(lambda: any(isinstance(event, RunFinished) for event in listener.events))
    qtbot.waitUntil(lambda: not thread._timer.isActive())
    assert listener.threads == {QThread.currentThread()}
    text = "".join(e.text for e in listener.events if isinstance(e, TextAdded) and e.candidate == 3)
    assert text == "x = 1"
    assert thread.close()
    assert not thread.alive


class Breaking:
    """Answers the first load, then breaks at anything."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def submit(self, message: Message) -> None:
        self._messages.put(message)

    def run(self, emit: Emit) -> None:
        self._messages.get()
        emit(Ready("m", "cpu", "int8", 1024))
        self._messages.get()
        raise ZeroDivisionError("by nought")


def test_an_engine_that_breaks_ends_its_run_with_a_sentence(qtbot: QtBot) -> None:
    thread = EngineThread(Breaking)
    listener = Listener(thread)
    thread.submit(Load(ModelChoice("m")))
    thread.submit(Generate("r", Request("p", 1)))
    qtbot.waitUntil(lambda: not thread.alive)
    ready, finished, closed = listener.events
    assert isinstance(ready, Ready)
    assert isinstance(finished, RunFinished)
    assert (finished.run, finished.outcome) == ("r", "failed")
    assert "by nought" in finished.reason
    assert "ZeroDivisionError" in finished.details
    assert closed == Closed()
    assert thread.close()


def test_an_engine_that_cannot_be_opened_is_a_failed_load(qtbot: QtBot) -> None:
    def refuse() -> ScriptedEngine:
        raise BadRequest("There is no such model.")

    thread = EngineThread(refuse)
    listener = Listener(thread)
    thread.submit(Load(ModelChoice("m")))
    qtbot.waitUntil(lambda: not thread.alive)
    assert isinstance(listener.events[0], LoadFailed)
    assert listener.events[0].reason == "There is no such model."
    assert thread.close()


class Emitter(QObject):
    received = Signal(object)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None and True are immortal from 3.12 on")
def test_qt_keeps_count_of_none_and_true(qtbot: QtBot) -> None:
    """A release that loses references of None and True with every call aborts after some hundred signals."""
    emitter, heard = Emitter(), []
    emitter.received.connect(heard.append)
    before = sys.getrefcount(None), sys.getrefcount(True)
    for _ in range(200):
        emitter.blockSignals(False)
        emitter.objectName()
        emitter.setParent(None)
    for _ in range(100):
        emitter.received.emit(None)
        emitter.received.emit(True)
    heard.clear()
    after = sys.getrefcount(None), sys.getrefcount(True)
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True)), (before, after)
