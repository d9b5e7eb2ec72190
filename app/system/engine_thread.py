"""The worker thread: messages go in, text and events come out.

Nothing crosses by a signal per token. The engine's thread leaves everything in an Inbox under one lock, and one
timer in the main thread empties it twenty times a second.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QThread, QTimer, Signal

from engine.contract import (
    BasslineError,
    Close,
    Closed,
    Engine,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    Ready,
    RunFinished,
    RunOutcome,
    StepDone,
    TextAdded,
)
from engine.event_log import EventLog

TICK_MS = 50
DRAIN_S = 0.015
CLOSE_S = 5.0


EventBatch = tuple[Event, ...]  # of one run: text and totals between two other events; any other event is alone


@dataclass(frozen=True)
class EngineFailure:
    """The engine's thread ended by an error; nothing follows."""

    reason: str
    details: str


class Inbox:
    """Events on their way to the main thread. Any thread puts, one takes.

    Text of one candidate that waits here is one piece however many tokens it was, but for its first, whose time tells
    when the candidate began; of the totals only the last are kept. Neither ever passes another kind of event, so a run
    comes to the same whether it hears every word or what is taken from here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Event | EngineFailure | _TextBatch] = deque()
        self._begun: set[tuple[str, int]] = set()  # run and candidate

    def put(self, event: Event | EngineFailure) -> None:
        with self._lock:
            if not isinstance(event, TextAdded | StepDone):
                self._entries.append(event)
                return
            last = self._entries[-1] if self._entries else None
            if not isinstance(last, _TextBatch) or last.run != event.run:
                last = _TextBatch(event.run)
                self._entries.append(last)
            if isinstance(event, StepDone):
                last.totals = event
            elif (event.run, event.candidate) in self._begun:
                last.texts.setdefault(event.candidate, []).append(event)
            else:
                self._begun.add((event.run, event.candidate))
                last.firsts.append(event)

    def take(self, budget_s: float = DRAIN_S) -> Iterator[EventBatch | EngineFailure]:
        """What came, in order, until none is left or ``budget_s`` of work has been done on it."""
        until = time.perf_counter() + budget_s
        while True:
            with self._lock:
                entry = self._entries.popleft() if self._entries else None
            if entry is None:
                return
            yield (
                entry
                if isinstance(entry, EngineFailure)
                else entry.events()
                if isinstance(entry, _TextBatch)
                else (entry,)
            )
            if time.perf_counter() > until:
                return

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)


class _TextBatch:
    """Text and totals between two events of other kinds."""

    def __init__(self, run: str):
        self.run = run
        self.firsts: list[TextAdded] = []
        self.texts: dict[int, list[TextAdded]] = {}
        self.totals: StepDone | None = None

    def events(self) -> EventBatch:
        joined = (_joined(texts) for texts in self.texts.values())
        return (*self.firsts, *joined, *([self.totals] if self.totals else []))


def _joined(texts: Sequence[TextAdded]) -> TextAdded:
    last = texts[-1]
    return TextAdded(last.run, last.candidate, "".join(text.text for text in texts), last.tokens, last.at_s)


class _Worker(QThread):
    """Runs one engine from its making to Closed."""

    def __init__(self, open_engine: Callable[[], Engine], inbox: Inbox, parent: QObject):
        super().__init__(parent)
        self.setObjectName("engine")
        self._open, self._inbox = open_engine, inbox
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._early: list[Message] = []  # said before there was an engine to hear it

    def submit(self, message: Message) -> None:
        with self._lock:
            if self._engine is None:
                self._early.append(message)
            else:
                self._engine.submit(message)

    def run(self) -> None:
        try:
            engine = self._open()
            with self._lock:
                self._engine = engine
                for message in self._early:
                    engine.submit(message)
            engine.run(self._inbox.put)
        except BasslineError as error:
            self._inbox.put(EngineFailure(str(error), traceback.format_exc()))
        except Exception as error:
            words = f"The engine broke down ({error or type(error).__name__}); choose a model to start it again."
            self._inbox.put(EngineFailure(words, traceback.format_exc()))
        with self._lock:
            self._engine = None  # with its models: this object may live on


class EngineThread(QObject):
    """One engine on its own thread, as the main thread sees it.

    ``received`` is emitted in the main thread, once for events that came together; ``drained(more)`` after each tick
    that brought any. The timer ticks only while an answer is due.
    """

    received = Signal(tuple)  # EventBatch
    drained = Signal(bool)

    def __init__(self, open_engine: Callable[[], Engine], parent: QObject | None = None):
        super().__init__(parent)
        self._inbox = Inbox()
        self._due: list[Load | Generate] = []  # messages whose last word has not come yet
        self._closed = False
        self._log = EventLog()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.drain)
        self._worker = _Worker(open_engine, self._inbox, self)
        self._worker.start()

    @property
    def alive(self) -> bool:
        """It can still answer; false once the engine has closed or broken down."""
        return not self._closed

    @property
    def finished(self) -> bool:
        """Its thread has ended."""
        return self._worker.isFinished()

    def submit(self, message: Message) -> None:
        """Hand over a message; never blocks. Cancel reaches the engine at once, whatever else is waiting."""
        self._log.message(message)
        if isinstance(message, Load | Generate):
            self._due.append(message)
        self._worker.submit(message)
        self._timer.start()

    def drain(self) -> None:
        """Pass on what has come, for at most 15 ms."""
        came = more = False
        for events in self._inbox.take():
            came, more = (
                True,
                more or isinstance(events, EngineFailure) or not isinstance(events[-1], TextAdded | StepDone),
            )
            for batch in self._failure_events(events) if isinstance(events, EngineFailure) else (events,):
                self._note(batch[-1])
                self.received.emit(batch)
        if came:
            self.drained.emit(more)
        if not self._due and not len(self._inbox):
            self._timer.stop()

    def _note(self, event: Event) -> None:
        self._log.event(event)
        if isinstance(event, Ready | LoadFailed):  # loads are answered in order, each by one of these
            load = next((message for message in self._due if isinstance(message, Load)), None)
            self._due = [message for message in self._due if message is not load]
        elif isinstance(event, RunFinished):
            self._due = [m for m in self._due if not (isinstance(m, Generate) and m.run == event.run)]
        elif isinstance(event, Closed):
            self._closed, self._due = True, []

    def _failure_events(self, broken: EngineFailure) -> list[EventBatch]:
        """What a broken engine can no longer say itself: every run and load that was due has failed."""
        runs = [message.run for message in self._due if isinstance(message, Generate)]
        words: list[Event] = [RunFinished(run, RunOutcome.FAILED, None, broken.reason, broken.details) for run in runs]
        return [(word,) for word in (*(words or [LoadFailed(broken.reason, broken.details)]), Closed())]

    def abandon(self) -> None:
        """Listen to it no more; its thread is left to end by itself, and ``close`` still waits for it."""
        self._timer.stop()
        self._closed, self._due = True, []
        self._worker.submit(Close())

    def close(self) -> bool:
        """End the engine and its thread; false if it did not end within 5 seconds. Nothing is emitted any more."""
        self._timer.stop()
        self._closed = True
        self._worker.submit(Close())
        return self._worker.wait(int(CLOSE_S * 1000))
