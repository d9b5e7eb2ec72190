"""The machine that a figure was measured on, and whether it was idle enough to trust the figure."""

import argparse
import datetime
import os
import platform
import subprocess
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

QUIET = 0.3  # cores that others may use; beyond it a run is void


def facts() -> dict[str, str]:
    """Machine, versions and date, as they belong beside every table."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    memory = psutil.virtual_memory().total / 2**30
    return {
        "cpu": f"{_cpu_name()}, {psutil.cpu_count(logical=False)} cores, {memory:.0f} GiB",
        "python": f"{platform.python_version()}, {packages}",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
    }


def others_load(seconds: float = 0.5) -> float:
    """Cores in use by other processes, over ``seconds``; ask while this process rests."""
    own = psutil.Process()
    before: float = sum(own.cpu_times()[:2])
    busy: float = psutil.cpu_percent(interval=seconds) / 100 * (os.cpu_count() or 1)
    return max(0.0, busy - (float(sum(own.cpu_times()[:2])) - before) / seconds)


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """The options of a run as they belong into its record: of files only the names, for folders are one machine's."""
    files = {
        name: Path(value).name
        for name, value in vars(options).items()
        if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute())
    }
    return vars(options) | files


class Watch:
    """Cores that others use while the block runs: all that is busy, less this process and what it has started."""

    others = 0.0

    def __enter__(self) -> "Watch":
        self._before = self._clocks()
        return self

    def __exit__(self, *_: object) -> None:
        wall, busy, own = (after - before for before, after in zip(self._before, self._clocks(), strict=True))
        self.others = max(0.0, (busy - own) / wall) if wall else 0.0

    @staticmethod
    def _clocks() -> tuple[float, float, float]:
        """Seconds: of the wall, of all cores at work, of our own processes at work."""
        own, cores = psutil.Process(), psutil.cpu_times()
        ours = [process.cpu_times() for process in (own, *own.children(recursive=True))]
        # A guest's time is counted as its host's already.
        rest = sum(getattr(cores, name, 0.0) for name in ("idle", "iowait", "guest", "guest_nice"))
        return time.monotonic(), sum(cores) - rest, sum(clock.user + clock.system for clock in ours)


class PeakMemory:
    """The most memory that a process held at a time while the block ran, in MiB; None where the system tells no such.

    Resident memory: weights that are mapped from a file count as far as they were read.
    """

    mib: float | None = None

    def __init__(self, pid: int):
        self._folder = Path(f"/proc/{pid}")

    def __enter__(self) -> "PeakMemory":
        try:
            (self._folder / "clear_refs").write_text("5")  # Linux: the mark falls to what is held now
        except OSError:
            self._folder = Path()
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder != Path():
            with suppress(OSError):  # a process that has died has no mark, or is gone
                lines = (self._folder / "status").read_text().splitlines()
                self.mib = next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
