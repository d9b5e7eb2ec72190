"""The Engine interface: it runs on one thread, takes messages from any, and emits events through one callable."""

import queue
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from engine.contract.events import Event
from engine.contract.request import Add, Cancel, Close, Generate, Load, Message

Emit = Callable[[Event], None]


class Engine(Protocol):
    """Lives on one thread: whoever calls ``run``."""

    def submit(self, message: Message) -> None:
        """Hand over a message from any thread. Never blocks; Cancel takes effect within one decode step."""

    def run(self, emit: Emit) -> None:
        """Answer messages until Close. ``emit`` is called on this thread and must return at once."""


class Mailbox:
    """Messages waiting for an engine. Any thread puts; only the engine's thread takes.

    The engine looks inside at every step and between prefill chunks, so Cancel never waits in a queue behind the
    work that it is meant to stop.
    """

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._aside: list[Message] = []  # for later, in order: what did not concern the work in progress

    def put(self, message: Message) -> None:
        self._arrived.put(message)

    def next(self) -> Load | Generate | Close:
        """The next piece of work; waits for it. Close comes before everything else."""
        while True:
            self._collect()
            for message in self._aside:
                if isinstance(message, Close):
                    return message
            while self._aside:
                message = self._aside.pop(0)
                if isinstance(message, Load | Generate):
                    return message
                # A Cancel or Add whose run is over has nothing to do any more.
            self._aside.append(self._arrived.get())

    def arrives(self, within_s: float) -> bool:
        """Whether something has come that was not looked at; waits for it so long."""
        self._collect()
        if not self._aside:
            with suppress(queue.Empty):
                self._aside.append(self._arrived.get(timeout=within_s))
        return bool(self._aside)

    def during(self, run: str) -> list[Cancel | Add]:
        """What concerns the run in progress (``""``: a load); never waits. Close cancels it and stays for ``next``."""
        self._collect()
        concerns = [m for m in self._aside if isinstance(m, Cancel | Add) and m.run == run]
        self._aside = [m for m in self._aside if m not in concerns]
        if any(isinstance(m, Close) for m in self._aside):
            concerns.append(Cancel(run))
        return concerns

    def _collect(self) -> None:
        while not self._arrived.empty():
            self._aside.append(self._arrived.get())
