"""How the host and a GPU work beside each other: what is sent there without waiting, and how long the GPU was at it."""

import torch
from torch import Tensor

from engine.backends.device import Event
from engine.backends.registry import device_of


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """A copy of the host's ``values`` on ``device``, in order with what is asked of it; a GPU is not waited for.

    Memory that is not pinned would make the host wait for everything the GPU has yet to do.
    """
    if device_of(device).is_asynchronous:
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


class HostCopy:
    """A tensor on its way to the host: the copy is ordered, and what was asked of the GPU later does not delay it."""

    def __init__(self, values: Tensor):
        device = device_of(values.device)
        self._host = torch.empty(values.shape, dtype=values.dtype, pin_memory=device.is_asynchronous)
        self._host.copy_(values, non_blocking=True)
        self._done = device.event()
        self._done.record()

    def wait(self) -> Tensor:
        self._done.synchronize()
        return self._host


class Stopwatch:
    """Seconds of one piece of work; on a GPU those of the GPU, whatever the host did meanwhile."""

    def __init__(self, device: torch.device):
        self._device = device_of(device)
        self._start = self._mark()
        self._end = self._start

    def stop(self) -> None:
        """All of the work has been asked for."""
        self._end = self._mark()

    @property
    def seconds(self) -> float:
        """Waits for the end of the work."""
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1e3

    def _mark(self) -> Event:
        event = self._device.event(timing=True)
        event.record()
        return event
