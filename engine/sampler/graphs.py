"""Forward passes captured as graphs: one launch for a whole pass, for every length it may have.

A graph holds pointers and Python integers as they were when it was captured. Pointers stay because the cache does not
move (``fixed_cache``), lengths are read on the device, and every integer that shapes a launch is in the graph's key.
Graphs are captured largest first, so that the smaller ones fit into the memory of one shared pool.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, cuda

from engine.models.room import Room
from engine.sampler.faults import first_line, lack_of_memory
from engine.sampler.fixed_cache import FixedStep

WARM_UPS = 2  # passes before capture: kernels are compiled and libraries make their workspaces


@dataclass(frozen=True)
class Key:
    """All that shapes a launch: ``tokens`` of the line, the cache's room, and whether each row's last logits do."""

    tokens: int
    room: Room
    last_only: bool


class Capture(Protocol):
    """How a pass becomes something to replay."""

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        """Run ``work`` as a warm-up and record it; the replay, and the tensor that every replay fills."""


class CudaCapture:
    """Capture by CUDA, all graphs in one pool, and on one stream: libraries keep a workspace for each that they see.

    A capture that fails leaves nothing behind: the stream that was current is current again, and pool and stream are
    new ones.
    """

    def __init__(self) -> None:
        self._pool, self._stream = cuda.graph_pool_handle(), cuda.Stream()
        self._failed: list[Any] = []

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        """Raises what the work raised, or what CUDA said; a lack of memory as such."""
        before, graph = cuda.current_stream(), cuda.CUDAGraph()
        try:
            self._warm_up(work, before)
            with cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                out = work()
        except Exception as error:
            cuda.set_stream(before)  # torch does not, where ending the capture fails too
            self._give_up(graph)
            if (lack := lack_of_memory(error)) is not None and lack is not error:
                raise lack from error
            raise
        return graph.replay, out

    def _warm_up(self, work: Callable[[], Tensor], before: Any) -> None:
        """The last pass proves that nothing makes the host wait: inside a capture that would be too late to mend."""
        self._stream.wait_stream(before)
        with cuda.stream(self._stream):
            for left in reversed(range(WARM_UPS)):
                if left:
                    work()
                else:
                    with _waiting_is_an_error():
                        work()
        before.wait_stream(self._stream)

    def _give_up(self, graph: Any) -> None:
        """torch up to 2.13 goes on counting a capture whose end failed, and every later ``empty_cache`` asserts."""
        self._failed.append(graph)  # the allocator of pinned memory may still ask it which stream it was for
        with suppress(RuntimeError, AttributeError):  # it was ended properly, or never begun
            device = cuda.current_device()
            torch._C._cuda_endAllocateToPool(device, self._pool)
            torch._C._cuda_releasePool(device, self._pool)
        self._pool, self._stream = cuda.graph_pool_handle(), cuda.Stream()


@contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    """Inside, an operation that makes the host wait for the GPU raises RuntimeError."""
    mode = cuda.get_sync_debug_mode()
    cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        cuda.set_sync_debug_mode(mode)


@dataclass(frozen=True)
class Captured:
    """One graph: load ``step``, replay, read ``logits``."""

    step: FixedStep
    replay: Callable[[], None]
    logits: Tensor


class Graphs:
    """The graphs of one model, by key. ``fault``: what went wrong with a capture, if anything; then there are none."""

    def __init__(self, capture: Capture | None):
        self._capture, self.fault = capture, ""
        self._captured: dict[Key, Captured] = {}

    @property
    def reason(self) -> str:
        """Why there are none, a sentence for the doctor; or empty."""
        return f"The model cannot be captured as a CUDA graph ({self.fault})." if self.fault else ""

    @property
    def are_on(self) -> bool:
        return self._capture is not None

    def clear(self) -> None:
        """The cache has moved: what was captured points to nowhere."""
        self._captured.clear()

    def prepare(
        self,
        keys: Iterable[Key],
        new_step: Callable[[int], FixedStep],
        run: Callable[[FixedStep, bool], Tensor],
    ) -> None:
        """Capture those of ``keys`` that are not there yet, in this order: the largest first.

        ``new_step(tokens)`` makes a line of padding, ``run`` is the pass itself. A lack of memory is raised; any other
        fault means that this model has no graphs any more.
        """
        for key in keys:
            if self._capture is not None and key not in self._captured:
                self._add(key, new_step(key.tokens), run)

    def find(
        self,
        key: Key,
        new_step: Callable[[int], FixedStep],
        run: Callable[[FixedStep, bool], Tensor],
    ) -> Captured | None:
        """The graph for ``key``, with all that its room can ask for; None where there are no graphs."""
        if self._capture is None:
            return None
        if key not in self._captured:
            others = () if key.last_only else (Key(size, key.room, False) for size in key.room.lines)
            self.prepare([*others, key], new_step, run)
        return self._captured.get(key)

    def capture(self, work: Callable[[], Tensor]) -> Callable[[], None] | None:
        """``work`` to replay, captured beside the passes; None where there are no graphs."""
        found = self._try(work)
        return found and found[0]

    def _add(self, key: Key, step: FixedStep, run: Callable[[FixedStep, bool], Tensor]) -> None:
        found = self._try(lambda: run(step, key.last_only))
        if found is not None:
            self._captured[key] = Captured(step, *found)

    def _try(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor] | None:
        if self._capture is None:
            return None
        try:
            return self._capture(work)
        except Exception as error:
            self._captured.clear()  # they shared a pool with what failed
            if lack_of_memory(error) is not None:
                raise  # fewer rows may fit; that is not this model's fault
            self._capture = None  # a model that asks the device something in the middle of its pass, say
            self.fault = first_line(error) or type(error).__name__
            return None
