"""How the host and a GPU work beside each other: what is sent there without waiting, and how long the GPU was at it."""

import time
from typing import Any

import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """A copy of the host's ``values`` on ``device``, in order with what is asked of it; a GPU is not waited for.

    Memory that is not pinned would make the host wait for everything the GPU has yet to do.
    """
    if device.type == "cuda":
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


class HostCopy:
    """A tensor on its way to the host: the copy is ordered, and what was asked of the GPU later does not delay it."""

    def __init__(self, values: Tensor):
        self._on_gpu = values.device.type == "cuda"
        self._host = torch.empty(values.shape, dtype=values.dtype, pin_memory=self._on_gpu)
        self._host.copy_(values, non_blocking=True)
        if self._on_gpu:
            self._done = torch.cuda.Event()
            self._done.record()

    def wait(self) -> Tensor:
        if self._on_gpu:
            self._done.synchronize()
        return self._host


class Stopwatch:
    """Seconds of one piece of work; on a GPU those of the GPU, whatever the host did meanwhile."""

    def __init__(self, device: torch.device):
        self._on_gpu = device.type == "cuda"
        self._start = self._mark()
        self._end = self._start

    def stop(self) -> None:
        """All of the work has been asked for."""
        self._end = self._mark()

    @property
    def seconds(self) -> float:
        """Waits for the end of the work."""
        if not self._on_gpu:
            return float(self._end - self._start)
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1e3

    def _mark(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
