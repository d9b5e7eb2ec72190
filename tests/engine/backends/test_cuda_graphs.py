"""Capture as CUDA does it, played by a stand-in that keeps torch's habits: what a failed capture leaves behind."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from engine.backends import cuda_graphs
from engine.backends.cuda_graphs import CudaCapture

LACK = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


class Stream:
    def wait_stream(self, other):
        pass


class FakeCuda:
    """``torch.cuda`` as it behaves up to 2.13 where a capture fails: see ``torch/cuda/graphs.py``."""

    def __init__(self):
        self.default = self.current = Stream()
        self.underway, self.pools, self.released = set(), 0, []
        self.mode = self.captures = self.runs = 0
        self.invalid = False
        self.Stream, self.CUDAGraph = Stream, lambda: SimpleNamespace(replay=lambda: None)

    def graph_pool_handle(self):
        self.pools += 1
        return (0, self.pools)

    def current_stream(self):
        return self.current

    def set_stream(self, stream):
        self.current = stream

    def current_device(self):
        return 0

    def get_sync_debug_mode(self):
        return self.mode

    def set_sync_debug_mode(self, mode):
        self.mode = mode

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph, pool, stream, capture_error_mode):
        assert capture_error_mode == "thread_local"  # another thread's call must not spoil it
        self.captures += 1
        self.empty_cache()
        before, self.current = self.current, stream
        self.underway.add(pool)
        self.invalid = False
        try:
            yield
        finally:
            if self.invalid:  # neither the stream is restored nor the capture forgotten
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
            self.underway.discard(pool)
            self.current = before

    def wait(self):
        """An operation that makes the host wait."""
        if self.mode == "error":
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.underway:
            self.invalid = True
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    def empty_cache(self):
        assert not self.underway, "captures_underway.empty() INTERNAL ASSERT FAILED"

    def end(self, device, pool):
        if pool not in self.underway:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.underway.discard(pool)

    def release(self, device, pool):
        self.released.append(pool)


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(cuda_graphs, "cuda", fake)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", fake.end, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_releasePool", fake.release, raising=False)
    return fake


def works(cuda):
    """Whether a capture goes well now, on the stream that was current, in a pool of its own."""
    before = cuda.current
    _, out = CudaCapture()(lambda: torch.zeros(1))
    return cuda.current is before and not cuda.underway and len(out) == 1


def test_a_capture_that_goes_well(cuda):
    seen = []

    def work():
        seen.append((cuda.mode, bool(cuda.underway), cuda.current is cuda.default))
        return torch.zeros(3)

    capture = CudaCapture()
    assert len(capture(work)[1]) == 3
    # Two passes beforehand, the second of which may not make the host wait; then the capture.
    assert seen == [(0, False, False), ("error", False, False), (0, True, False)]
    assert (cuda.current, cuda.mode, cuda.pools) == (cuda.default, 0, 1)


def test_a_pass_that_makes_the_host_wait_is_found_before_any_capture(cuda):
    capture = CudaCapture()
    with pytest.raises(RuntimeError, match="synchronizing"):
        capture(lambda: cuda.wait())
    assert (cuda.captures, cuda.mode, cuda.current) == (0, 0, cuda.default)
    assert works(cuda)


@pytest.mark.parametrize("broken", ["by an operation", "by memory", "by Python"])
def test_a_capture_that_fails_leaves_nothing_behind(cuda, broken):
    def work():
        if cuda.underway:
            if broken == "by an operation":
                cuda.wait()
            cuda.invalid = broken == "by memory"
            raise LACK if broken == "by memory" else ValueError("in the middle")
        return torch.zeros(1)

    capture = CudaCapture()
    pool = capture._pool
    expected = {"by memory": torch.OutOfMemoryError, "by Python": ValueError}.get(broken, RuntimeError)
    with pytest.raises(expected):
        capture(work)
    assert cuda.current is cuda.default
    cuda.empty_cache()
    assert cuda.released == ([] if broken == "by Python" else [pool])
    assert capture._pool != pool
    assert len(capture(lambda: torch.zeros(2))[1]) == 2
    assert works(cuda)


def test_the_graph_that_failed_stays_alive(cuda):
    """torch's allocators go on asking it which stream it was for."""
    capture = CudaCapture()
    with pytest.raises(ZeroDivisionError):
        capture(lambda: torch.zeros(1 // 0))
    assert len(capture._failed) == 1
