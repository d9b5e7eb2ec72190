"""Forward passes captured as graphs: one launch for a whole pass, for every length it may have.

A graph holds pointers and Python integers as they were when it was captured. Pointers stay because the cache does not
move (``fixed_cache``), lengths are read on the device, and every integer that shapes a launch is in the graph's key.
Graphs are captured largest first, so that the smaller ones fit into the memory of one shared pool.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.sampler.fixed_cache import FixedStep, Room

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)  # tokens of a line that has a graph
WARM_UPS = 2  # passes before capture: kernels are compiled and libraries make their workspaces


@dataclass(frozen=True)
class Key:
    """All that shapes a launch: ``tokens`` of the line, the cache's room, and whether each row's last logits do."""

    tokens: int
    room: Room
    last_only: bool


def bucket(tokens: int) -> int | None:
    """The smallest line with a graph that holds so many tokens; None: so long that launches do not matter."""
    return next((size for size in SIZES if size >= tokens), None)


class Capture(Protocol):
    """How a pass becomes something to replay."""

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        """Run ``work`` as a warm-up and record it; the replay, and the tensor that every replay fills."""


class CudaCapture:
    """Capture by CUDA, all graphs in one pool, and on one stream: libraries keep a workspace for each that they see."""

    def __init__(self) -> None:
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            out = work()
        return graph.replay, out


@dataclass(frozen=True)
class Captured:
    """One graph: load ``step``, replay, read ``logits``."""

    step: FixedStep
    replay: Callable[[], None]
    logits: Tensor


class Graphs:
    """The graphs of one model, by key. ``reason``: why there are none, a sentence for the doctor; or empty."""

    def __init__(self, capture: Capture | None, reason: str = ""):
        self._capture, self.reason = capture, reason
        self._captured: dict[Key, Captured] = {}

    def clear(self) -> None:
        """The cache has moved: what was captured points to nowhere."""
        self._captured.clear()

    def find(
        self,
        key: Key,
        new_step: Callable[[int], FixedStep],
        run: Callable[[FixedStep, bool], Tensor],
    ) -> Captured | None:
        """The graph for ``key``; all that its room can ask for are captured when the first is asked for.

        None where there are no graphs. ``new_step(tokens)`` makes a line of padding, ``run`` is the pass itself.
        """
        if self._capture is None:
            return None
        if key not in self._captured:
            largest = max(key.tokens, bucket(min(key.room.rows * 17, SIZES[-1])) or SIZES[-1])
            sizes = [key.tokens] if key.last_only else [size for size in reversed(SIZES) if size <= largest]
            for size in sizes:
                if not self._add(Key(size, key.room, key.last_only), new_step(size), run):
                    return None
        return self._captured[key]

    def capture(self, work: Callable[[], Tensor]) -> Callable[[], None] | None:
        """``work`` to replay, captured beside the passes; None where there are no graphs."""
        found = self._try(work)
        return found and found[0]

    def _add(self, key: Key, step: FixedStep, run: Callable[[FixedStep, bool], Tensor]) -> bool:
        found = self._try(lambda: run(step, key.last_only))
        if found is not None:
            self._captured[key] = Captured(step, *found)
        return found is not None

    def _try(self, work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor] | None:
        if self._capture is None:
            return None
        try:
            return self._capture(work)
        except RuntimeError as error:  # a model that asks the device something in the middle of its pass
            self._capture = None
            self.reason = f"The model cannot be captured as a CUDA graph ({str(error).splitlines()[0]})."
            self._captured.clear()
            return None
