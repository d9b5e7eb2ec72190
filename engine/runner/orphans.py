"""Processes whose parents have gone come to this one, not to init: to be ended here, and reaped here.

Ending a box leaves its innermost bubblewrap without a parent for a moment, and a candidate without a sandbox can
detach a process on purpose. Where init does not reap (many containers), each would stay as a zombie.
"""

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """From now on, orphans below this process become its children. Does nothing where the kernel refuses."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(own: set[int]) -> int:
    """Kills and reaps the children of this (one-threaded) process that are not among ``own``; how many are left."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    left = 0
    for pid in map(int, children.read_text().split()) if children.exists() else ():
        if pid in own:
            continue
        os.kill(pid, signal.SIGKILL)  # a child stays ours, and its number with it, until it is waited for
        reaped, _ = os.waitpid(pid, os.WNOHANG)
        left += not reaped
    return left
