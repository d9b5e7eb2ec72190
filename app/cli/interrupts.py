"""Ctrl-C as a message, so that the candidates written so far are kept."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from app.system.leaving import leave

INTERRUPTED = 130


@contextlib.contextmanager
def on_interrupt(handler: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls ``handler``, between two steps of the main thread; a second one leaves at once."""

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, lambda *_: leave(INTERRUPTED))
        handler()

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
