"""Who answers: an engine runs on one thread, hears messages from any, and speaks through one callable."""

import queue
from collections.abc import Callable
from typing import Protocol

from engine.contract.events import Event
from engine.contract.request import Message

Emit = Callable[[Event], None]


class Engine(Protocol):
    """Lives on one thread: whoever calls ``run``."""

    def submit(self, message: Message) -> None:
        """Hand over a message from any thread. Never blocks; Cancel is heeded within one decode step."""

    def run(self, emit: Emit) -> None:
        """Answer messages until Close. ``emit`` is called on this thread and must return at once."""


class Mailbox:
    """Messages waiting for an engine. Any thread puts; the engine's thread takes.

    The engine looks inside at every step and between prefill chunks, so Cancel never waits in a queue
    behind the work that it is meant to stop.
    """

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def put(self, message: Message) -> None:
        self._messages.put(message)

    def wait(self, timeout: float | None = None) -> Message | None:
        """The next message, or None after ``timeout`` seconds."""
        try:
            return self._messages.get(timeout=timeout)
        except queue.Empty:
            return None

    def drain(self) -> list[Message]:
        """Every message that has arrived, without waiting."""
        messages = []
        while not self._messages.empty():
            messages.append(self._messages.get())
        return messages
