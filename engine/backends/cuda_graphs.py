"""Forward passes captured as CUDA graphs, and what a capture that fails must not leave behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, cuda

from engine.backends.memory import lack_of_memory

WARM_UPS = 2  # passes before capture: kernels are compiled and libraries make their workspaces


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
