"""What a figure was measured on, and whether the machine was quiet enough to believe it."""

import datetime
import os
import platform
import subprocess
from importlib.metadata import version

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
    before = sum(own.cpu_times()[:2])
    busy = psutil.cpu_percent(interval=seconds) / 100 * (os.cpu_count() or 1)
    return max(0.0, busy - (sum(own.cpu_times()[:2]) - before) / seconds)


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
