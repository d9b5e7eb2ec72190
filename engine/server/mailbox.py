"""Messages on their way into an event loop."""

import asyncio
import contextlib
from collections.abc import Callable

from engine.contract import Add, Cancel, Close, Generate, Load, Mailbox, Message


class AsyncMailbox:
    """A mailbox whose arrivals wake the loop. Any thread puts; the engine's thread takes, between runs and during."""

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on this loop is told of every message."""
        self._loop = loop

    def put(self, message: Message) -> None:
        self._mailbox.put(message)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the engine has left
                self._loop.call_soon_threadsafe(self._arrived.set)

    def next(self) -> Load | Generate | Close:
        """See ``Mailbox.next``."""
        return self._mailbox.next()

    async def listen(self, run: str, do: Callable[[Cancel | Add], None]) -> None:
        """Pass on what concerns ``run``, the moment it comes; never returns."""
        while True:
            self._arrived.clear()
            for message in self._mailbox.during(run):
                do(message)
            await self._arrived.wait()
