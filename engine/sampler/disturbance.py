"""How much of the processor others took while something was timed: other programs, and the machine's host."""

import threading
import time

import psutil
import torch

BUSY = 0.15  # of the cores that passes run on; from here on times are those of another machine
GLANCE = 0.3  # seconds; the system counts in hundredths


class Disturbance:
    """Watches from when it is made until it is asked."""

    def __init__(self) -> None:
        self._start = _spent()

    def share(self) -> float | None:
        """Of the cores that passes run on, how much others took since; None where the system does not say.

        Others may have the cores that are left over: they take something only where all together want more than
        there are. 0 is undisturbed.
        """
        start, now = self._start, _spent()
        if start is None or now is None or now[0] <= start[0]:
            return None
        seconds, everyone, own = (after - before for before, after in zip(start, now, strict=True))
        cores, threads = psutil.cpu_count() or 1, max(1, torch.get_num_threads())
        others = max(0.0, everyone - own) / seconds
        return min(1.0, max(0.0, others - max(0, cores - threads)) / min(threads, cores))


def is_busy(share: float | None) -> bool:
    """Whether what was timed says little about this machine. Where nothing is known it is believed."""
    return share is not None and share > BUSY


def glance(seconds: float = GLANCE) -> float | None:
    """The share that others take now."""
    watch = Disturbance()
    threading.Event().wait(seconds)
    return watch.share()


def _spent() -> tuple[float, float, float] | None:
    """Seconds on the clock, of all cores in use by anyone, and of those used by this process."""
    try:
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
    except (psutil.Error, OSError):
        return None
    resting = times.idle + getattr(times, "iowait", 0.0)
    # Linux counts guests among user and nice, too.
    everyone = sum(times) - resting - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return time.perf_counter(), everyone, own.user + own.system
