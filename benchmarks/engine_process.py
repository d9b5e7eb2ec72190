"""An engine in a process of its own: what memory it takes is then known, and no other engine's threads are in it."""

import ctypes
import gc
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from benchmarks.machine import PeakMemory
from benchmarks.timing import Timing
from engine.contract import BasslineError, Request

Result = TypeVar("Result")


class HostedEngine(Protocol):
    def rest(self) -> None:
        """Let go of what the last answers left behind."""

    def answer(self, request: Request) -> Timing: ...

    def close(self) -> None: ...


class EngineProcess:
    """Answers from another process. ``opener`` is called there; what it raises is raised here."""

    def __init__(self, opener: Callable[[], HostedEngine]):
        # A fresh interpreter: a fork would inherit this one's memory, and torch's threads would not survive it.
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self._pid = self._do(os.getpid)
        try:
            self._do(_open, opener)
        except BaseException:
            self._pool.shutdown()
            raise

    def answer(self, request: Request) -> Timing:
        self._do(_rest)
        with PeakMemory(self._pid) as peak:
            timing = self._do(_answer, request)
        return replace(timing, peak_mib=peak.mib)

    def close(self) -> None:
        try:
            self._do(_close)
        finally:
            self._pool.shutdown()

    def _do(self, what: Callable[..., Result], *arguments: Any) -> Result:
        try:
            return self._pool.submit(what, *arguments).result()
        except BrokenExecutor as error:
            raise BasslineError(
                "An engine's process has ended by itself, perhaps for lack of memory; name fewer contenders."
            ) from error


_here: list[HostedEngine] = []  # the one of this process


def _open(opener: Callable[[], HostedEngine]) -> None:
    _here.append(opener())


def _rest() -> None:
    _here[0].rest()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps back is not this run's


def _answer(request: Request) -> Timing:
    return _here[0].answer(request)


def _close() -> None:
    _here.pop().close()
