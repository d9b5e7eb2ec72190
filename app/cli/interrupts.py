"""Ctrl-C as a message, so that what is there can be kept."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


@contextlib.contextmanager
def on_interrupt(heed: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls ``heed``, between two steps of the main thread; a second one leaves at once."""

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, lambda *_: leave())
        heed()

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave(code: int = INTERRUPTED) -> NoReturn:
    """End this process without waiting for threads that compute: torn down under them, torch aborts."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a stream that is gone, or one that was just being written to
            stream.flush()
    os._exit(code)
