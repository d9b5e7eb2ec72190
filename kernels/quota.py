"""How many processors this process may really use: a container often sees all of them but gets a share of their time.

A control group's quota says for how long, in every period, its processes may compute; who runs more threads than that
is stopped until the next period. Both versions of control groups, wherever this process stands in them. No torch.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def processors() -> int:
    """Whole processors: those this process is bound to, and no more than its share in time, rounded up."""
    limit = share()
    return bound() if limit is None else max(1, min(bound(), -int(-limit // 1)))


def bound() -> int:
    """Processors that this process may be scheduled on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share() -> float | None:
    """Processors' worth of time that the quotas leave, of this group and those around it; None where there is none."""
    return min(_quotas(), default=None)


def _quotas() -> Iterator[float]:
    for folder in _folders():
        with suppress(OSError, ValueError, ZeroDivisionError):  # version 2; "max" is no number
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError, ZeroDivisionError):  # version 1; -1 is no limit
            quota_us = int((folder / "cpu.cfs_quota_us").read_text())
            if quota_us > 0:
                yield quota_us / int((folder / "cpu.cfs_period_us").read_text())


def _folders() -> Iterator[Path]:
    """Of the groups that this process is in and those around them; a container may show its own as the root."""
    try:
        lines = MEMBERSHIP.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:  # version 2, alone or beside version 1
            roots = [GROUPS, GROUPS / "unified"]
        elif "cpu" in controllers.split(","):
            roots = [GROUPS / name for name in {"cpu", controllers, "cpu,cpuacct"}]
        else:
            continue
        for root in roots:
            inner = root / path.strip("/")
            yield from {root, inner, *(above for above in inner.parents if above.is_relative_to(root))}
