"""What this machine has, found without torch: for default choices, fit hints and the doctor."""

import contextlib
import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from kernels import quota

_DRIVER = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"
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
    memory = psutil.virtual_memory()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        processor=platform.machine(),
        cores=cores(),
        memory_total=memory.total,
        memory_free=min(memory.available, _room_in_container()),
        instructions=_instructions(),
        gpus=nvidia_gpus(),
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


@functools.cache
def nvidia_gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs the driver reports; empty without a driver, or when it does not answer in 5 s.

    Asked once: for memory that is free *now*, see ``memory_free``.
    """
    return _ask_driver()


def _ask_driver() -> tuple[Gpu, ...]:
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
    return "cuda" if torch_build_has_cuda() and nvidia_gpus() and not (why_hidden() or why_old_driver()) else "cpu"


def why_on_cpu() -> str:
    """Why models run on the processor by default though torch could use the GPU that is here: a sentence, or empty."""
    if not torch_build_has_cuda() or not nvidia_gpus():
        return ""
    why = why_hidden() or why_old_driver()
    return why and f"{why} Models run on the processor."


def why_hidden() -> str:
    """A person's own setting that keeps every GPU from torch, as a sentence; or empty."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or visible.strip() not in ("", "-1", "NoDevFiles"):
        return ""
    return f"CUDA_VISIBLE_DEVICES={visible} hides the GPU; unset it to use the GPU."


def why_old_driver() -> str:
    """That the NVIDIA driver is older than torch's CUDA, as a sentence that says what to do; empty where it is not.

    A driver serves every CUDA of its own major version, and older ones (NVIDIA, "CUDA Compatibility").
    """
    driver, build = _cuda_of_driver(), _cuda_of_torch()
    if driver is None or build is None or driver[0] >= build[0]:
        return ""
    return (
        f"The NVIDIA driver is too old for this torch (it knows CUDA {driver[0]}.{driver[1]}, torch needs "
        f"CUDA {build[0]}.{build[1]}); update the driver to use the GPU."
    )


@functools.cache
def _cuda_of_driver() -> tuple[int, int] | None:
    """The newest CUDA that the driver, or a compatibility package before it, serves; None if it cannot be asked."""
    version = ctypes.c_int(0)
    try:
        if ctypes.CDLL(_DRIVER).cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def _cuda_of_torch() -> tuple[int, int] | None:
    """What the installed torch was built with, read from its files: importing it takes a second."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    try:
        text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    version = re.search(r"^cuda\b[^=]*=\s*'(\d+)\.(\d+)", text, re.MULTILINE)
    return (int(version[1]), int(version[2])) if version else None


def why_no_cuda() -> str:
    """Why nothing can run on ``cuda`` here, as a sentence that says what to do; empty where it may work."""
    if not torch_build_has_cuda():
        return "This torch is a build without CUDA; choose --device cpu, or install the CUDA build of torch."
    if not nvidia_gpus() and not _driver_loads():
        return "No NVIDIA GPU is found here; choose --device cpu, or install the NVIDIA driver."
    why = why_hidden() or why_old_driver()
    return why and f"{why} Or choose --device cpu."


def _driver_loads() -> bool:
    """A container may have the GPU's driver but not the command that tells about it."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


def memory_free(kind: str) -> int | None:
    """Bytes that are free now on ``cpu``, ``cuda`` or ``cuda:N``; None where the driver does not say.

    ``cuda`` without a number is all GPUs together: a model that exceeds the first is spread over them.
    """
    if kind == "cpu":
        available: int = psutil.virtual_memory().available
        return min(available, _room_in_container())
    gpus, number = _ask_driver(), kind.partition(":")[2]
    chosen = gpus[int(number) : int(number) + 1] if number else gpus
    return sum(gpu.memory_free for gpu in chosen) if chosen else None


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
