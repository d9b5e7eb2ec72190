"""NVIDIA GPUs: what driver and installation say of them, without torch, and what torch does there."""

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.backends.device import Capture, Device, Event, Gpu
from kernels.attention import why_not as why_no_kernels

if TYPE_CHECKING:
    from torch import Tensor

_DRIVER = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"
OLDEST = (8, 0)  # compute capability: older ones have no bfloat16, and too little shared memory for the tiles


class Cuda(Device):
    """NVIDIA's GPU of that number. Without one it is the first, or all: what exceeds the first is spread over them."""

    kind = "cuda"
    precisions = ("bfloat16", "float16", "float32", "int8", "int4")
    overhead = 700_000_000  # a CUDA context and its kernels
    memory = "GPU"
    is_asynchronous = True

    def why_not(self) -> str:
        if not torch_build_has_cuda():
            return "This torch is a build without CUDA; choose --device cpu, or install the CUDA build of torch."
        if not nvidia_gpus() and not _driver_loads():
            return "No NVIDIA GPU is found here; choose --device cpu, or install the NVIDIA driver."
        why = self.why_unused()
        return why and f"{why} Or choose --device cpu."

    def why_no_build(self) -> str:
        return "" if torch_build_has_cuda() else "This torch has no CUDA; install its CUDA build to use the GPU."

    def why_unused(self) -> str:
        return why_hidden() or why_old_driver()

    def why_no_kernels(self) -> str:
        return why_no_kernels()

    def found(self) -> tuple[Gpu, ...]:
        return nvidia_gpus()

    def memory_free(self) -> int | None:
        gpus = ask_driver()
        chosen = gpus if self.number is None else gpus[self.number : self.number + 1]
        return sum(gpu.memory_free for gpu in chosen) if chosen else None

    def automatic_precision(self) -> str:
        return "bfloat16"

    def why_not_in_torch(self) -> str:
        import torch

        if (self.number or 0) < torch.cuda.device_count():
            return ""
        return f"This torch finds no {self} device; choose --device cpu or install a CUDA build."

    def place(self) -> str:
        import torch

        return torch.cuda.get_device_name(str(self))

    def exceeds_first(self, size: int) -> bool:
        import torch

        if self.number is not None or torch.cuda.device_count() < 2:
            return False
        return size * 1.1 > torch.cuda.mem_get_info(0)[0]  # a tenth more: keys, values and workspace

    def release_cached_memory(self) -> None:
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def event(self, *, timing: bool = False) -> Event:
        import torch

        event: Event = torch.cuda.Event(enable_timing=timing)
        return event

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()

    def why_plain(self) -> str:
        import torch

        return why_no_kernels() or why_too_old(torch.cuda.get_device_capability(str(self)))

    def attention(self) -> "Callable[..., Tensor]":
        import torch

        from kernels.attention.triton import packed_attention

        if self.number is not None:
            torch.cuda.set_device(self.number)  # where this thread launches kernels
        return packed_attention

    def capture(self) -> Capture:
        from engine.backends.cuda_graphs import CudaCapture

        return CudaCapture()

    def is_alive(self) -> bool:
        import torch

        from engine.backends.memory import is_out_of_memory

        try:
            torch.zeros(1, device=str(self)).item()
        except RuntimeError as error:
            return is_out_of_memory(error)
        return True


def why_too_old(capability: tuple[int, int]) -> str:
    """Why a GPU of that compute capability runs without kernels; empty if they are for it."""
    if capability >= OLDEST:
        return ""
    return "This GPU is older than Ampere, which the kernels are for, so attention runs in plain PyTorch."


@functools.cache
def nvidia_gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs the driver reports; empty without a driver, or when it does not answer in 5 s.

    Asked once: for memory that is free *now*, see ``Cuda.memory_free``.
    """
    return ask_driver()


def ask_driver() -> tuple[Gpu, ...]:
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
        return Gpu(name, int(total) << 20, int(free) << 20, driver, "cuda")
    except ValueError:  # a GPU that keeps its memory to itself answers [N/A]
        return None


def torch_build_has_cuda() -> bool:
    """Whether the installed torch can use an NVIDIA GPU, read from its version: importing it takes a second."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return False
    return platform.system() != "Darwin" and not version.endswith("+cpu")


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


def _driver_loads() -> bool:
    """A container may have the GPU's driver but not the command that tells about it."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True
