"""Ends this process. Python's own shutdown is not safe while threads compute: torch aborts."""

import contextlib
import os
import sys
import threading
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End this process at once, without waiting for anything that still runs in it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a stream that is gone, or one that was just being written to
            stream.flush()
    os._exit(code)


def end(code: int) -> NoReturn:
    """End this process the usual way, or at once where other threads are left."""
    if threading.active_count() > 1:
        leave(code)
    sys.exit(code)
