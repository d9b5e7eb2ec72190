"""The engine on a thread of its own, and everything it says."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.contract import (
    CandidateFinished,
    Close,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
    TextAdded,
)
from engine.server.client import Timeouts
from engine.server.engine import ServerEngine

PROMPT = "Write a function."
HASTY = Timeouts(connect_s=5, silence_s=5, busy_s=5)


def request(candidates: int = 1, prompt: str = PROMPT, max_tokens: int = 64, **options: object) -> Request:
    sampling = options.pop("sampling", Sampling(max_tokens=max_tokens))
    return Request(prompt, options.pop("seed", 0), candidates, sampling=sampling, **options)


def eventually(fact: Callable[[], bool], at_most: float = 5.0) -> bool:
    """Whether ``fact`` comes to hold."""
    end = time.monotonic() + at_most
    while not fact() and time.monotonic() < end:
        time.sleep(0.01)
    return fact()


@dataclass
class Playing:
    """``without_thoughts``: every event so far."""

    engine: ServerEngine
    said: list[Event] = field(default_factory=list)
    _inbox: "queue.SimpleQueue[Event]" = field(default_factory=queue.SimpleQueue)

    def submit(self, message: Message) -> None:
        self.engine.submit(message)

    def until(self, fact: Callable[[Event], bool], at_most: float = 20.0) -> Event:
        """The first event from here on for which ``fact`` holds."""
        end = time.monotonic() + at_most
        while True:
            event = self._inbox.get(timeout=max(0.01, end - time.monotonic()))
            self.said.append(event)
            if fact(event):
                return event

    def load(self, address: str, **choice: object) -> Ready | LoadFailed:
        self.submit(Load(ModelChoice(server=address, **choice)))
        event = self.until(lambda event: isinstance(event, Ready | LoadFailed))
        assert isinstance(event, Ready | LoadFailed)
        return event

    def start(self, request: Request) -> None:
        self.submit(Generate("run", request))

    def finish(self, at_most: float = 20.0) -> RunFinished:
        event = self.until(lambda event: isinstance(event, RunFinished), at_most)
        assert isinstance(event, RunFinished)
        return event

    def play(self, request: Request) -> RunFinished:
        self.start(request)
        return self.finish()

    @property
    def ends(self) -> dict[int, CandidateFinished]:
        return {event.candidate: event for event in self.said if isinstance(event, CandidateFinished)}

    @property
    def texts(self) -> dict[int, str]:
        """What was streamed; checked against each candidate's last word."""
        texts: dict[int, str] = {}
        for event in self.said:
            if isinstance(event, TextAdded):
                texts[event.candidate] = texts.get(event.candidate, "") + event.text
        for number, end in self.ends.items():
            assert texts.get(number, "") == end.text
        return {number: end.text for number, end in sorted(self.ends.items())}


@contextmanager
def playing(patience: Timeouts = HASTY) -> Iterator[Playing]:
    """Closes the engine afterwards; it must leave within five seconds, whatever it was doing."""
    play = Playing(ServerEngine(patience))
    thread = threading.Thread(target=play.engine.run, args=(play._inbox.put,), daemon=True)
    thread.start()
    try:
        yield play
    finally:
        play.submit(Close())
        thread.join(5)
        assert not thread.is_alive(), "the engine did not leave"
