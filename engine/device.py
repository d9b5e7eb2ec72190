"""What this machine has, found without torch: for default choices, fit hints and the doctor."""

import functools
import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

# The instruction sets that decide how fast int8 runs, in rising order.
_INT8_INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU; memory in bytes."""

    name: str
    memory_total: int
    memory_free: int
    driver: str


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

    OpenMP threads that spin while they wait turn a 70 ms step into seconds when another process wants the core.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def survey() -> Machine:
    """Look at the machine; at most a few seconds, usually milliseconds."""
    memory = psutil.virtual_memory()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=platform.machine(),
        cores=cores(),
        memory_total=memory.total,
        memory_free=memory.available,
        instructions=_instructions(),
        gpus=nvidia_gpus(),
    )


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def nvidia_gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs the driver reports; empty without a driver, or when it does not answer in 5 s."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = "--query-gpu=name,memory.total,memory.free,driver_version"
    try:
        answer = subprocess.run(
            [command, query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=5, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(gpu for line in answer.splitlines() if (gpu := _gpu(line)) is not None)


def _gpu(line: str) -> Gpu | None:
    try:
        name, total, free, driver = (field.strip() for field in line.rsplit(",", 3))
        return Gpu(name, int(total) << 20, int(free) << 20, driver)
    except ValueError:  # a GPU that keeps its memory to itself answers [N/A]
        return None


def torch_build_has_cuda() -> bool:
    """Whether the installed torch can use an NVIDIA GPU, read from its version: importing it takes a second."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return platform.system() != "Darwin" and not version.endswith("+cpu")


def default_kind() -> str:
    """Where models run when nobody says: ``cuda`` or ``cpu``."""
    return "cuda" if torch_build_has_cuda() and nvidia_gpus() else "cpu"


def _instructions() -> tuple[str, ...]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    lines = (line for line in text.splitlines() if line.lower().startswith(("flags", "features")))
    flags = set(next(lines, "").split())
    return tuple(name for name in _INT8_INSTRUCTIONS if name in flags)
