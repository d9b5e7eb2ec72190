"""What this machine has, found without torch: for default choices, fit hints and the doctor."""

import contextlib
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.backends.device import Gpu
from engine.backends.registry import accelerators
from kernels import quota

# The instruction sets that decide how fast int8 runs, in rising order.
_INT8_INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True)
class Machine:
    """``cores`` are those this process may use; memory in bytes."""

    system: str
    processor: str
    cores: int
    memory_total: int
    memory_free: int
    instructions: tuple[str, ...]
    gpus: tuple[Gpu, ...]


def prepare_environment() -> None:
    """Settings that count only before torch and huggingface_hub load: call this first. A person's own values stay.

    OpenMP threads that spin while they wait turn a 70 ms step into seconds when another process wants the core. More
    threads than a container's share of the processor are stopped together for most of every tenth of a second.
    """
    if quota.processors() < quota.bound():
        os.environ.setdefault("OMP_NUM_THREADS", str(quota.processors()))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def inspect_machine() -> Machine:
    """Look at the machine; at most a few seconds, usually milliseconds."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=platform.machine(),
        cores=cores(),
        memory_total=psutil.virtual_memory().total,
        memory_free=memory_free(),
        instructions=_instructions(),
        gpus=tuple(gpu for device in accelerators() for gpu in device.found()),
    )


def has_display() -> bool:
    """Whether a window can open: always on macOS and Windows, elsewhere when a display server is named."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def cores() -> int:
    """Processor cores that this process may use: those it is bound to, and no more than a container's share of them."""
    return quota.processors()


def memory_total() -> int:
    """Bytes of memory that this process may come to use: the machine's, or a container's limit below it."""
    limit = 1 << 62
    with contextlib.suppress(OSError, ValueError):  # no such group, or its limit is the word "max"
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    return min(int(psutil.virtual_memory().total), limit)


def memory_free() -> int:
    """Bytes of memory that this process could take now."""
    available: int = psutil.virtual_memory().available
    return min(available, _room_in_container())


def _room_in_container() -> int:
    """What the control group leaves of the machine's memory; a number beyond any machine where it sets no limit."""
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):  # no such group, or its limit is the word "max"
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(statistics["inactive_file"]))  # files read long ago make room at once
    return 1 << 62


def _instructions() -> tuple[str, ...]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    lines = (line for line in text.splitlines() if line.lower().startswith(("flags", "features")))
    flags = set(next(lines, "").split())
    return tuple(name for name in _INT8_INSTRUCTIONS if name in flags)
