"""Which way a model runs on its device: the fastest one that was tried there and gave the right numbers.

A GPU has three ways, each of them a rung of a ladder: kernels with captured graphs, the kernels alone, plain PyTorch. A
rung is tried on the model's own shapes when the model is loaded (``trial.py``). Whatever goes wrong with it (no C
compiler for Triton's launcher, too little shared memory, a cache folder that cannot be written, a capture that fails,
wrong numbers) means the next rung, and a note for the status line and the doctor. Only a lack of memory does not: there
fewer rows are tried on the same rung.
"""

import errno
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from engine.contract import BasslineError, LoadCancelled
from engine.models.causal_lm import CausalLM
from engine.models.errors import UnsupportedModel
from engine.models.room import Room
from engine.sampler.device_model import FIRST_ROOM, DeviceModel
from engine.sampler.faults import first_line, is_out_of_memory, lack_of_memory, release_cached_memory
from engine.sampler.fixed_cache import Attention
from engine.sampler.graphs import Capture, CudaCapture
from engine.sampler.ragged_model import RaggedModel, is_spread
from engine.sampler.trial import Trial, WrongNumbers
from kernels.attention import why_not

OLDEST = (8, 0)  # compute capability: older ones have no bfloat16, and too little shared memory for the tiles
Check = Callable[[RaggedModel], None]  # raises UnsupportedModel: see ``self_check.check_ragged``
Progress = Callable[[int, int], None]  # tries that are over, of how many; raises LoadCancelled to stop


@dataclass(frozen=True)
class Rung:
    """One way to run. ``without``: what is missing on it, as a note begins."""

    has_kernels: bool
    has_graphs: bool
    without: str


RUNGS = (
    Rung(True, True, ""),
    Rung(True, False, "runs without captured graphs"),
    Rung(False, False, "runs in plain PyTorch, without the GPU kernels"),
)


class Device(Protocol):
    """What a device offers to one model. A test injects its own."""

    def why_plain(self) -> str:
        """Why only plain PyTorch comes into question, known without a try: a sentence, or empty."""

    def attention(self) -> Attention:
        """The kernel of ``kernels.attention``; raises where it cannot even be imported."""

    def capture(self) -> Capture:
        """What makes graphs of passes."""

    def is_alive(self) -> bool:
        """Whether it still computes: a kernel that reads where nothing is ends all work of this process there."""


@dataclass(frozen=True)
class Gpu:
    """The NVIDIA GPU that ``module`` is on."""

    module: CausalLM

    def why_plain(self) -> str:
        device = next(self.module.parameters()).device
        spread = "The model is spread over several GPUs, so it runs without captured graphs and with plain attention."
        return spread if is_spread(self.module) else why_not() or why_too_old(torch.cuda.get_device_capability(device))

    def attention(self) -> Attention:
        from kernels.attention.triton import packed_attention

        torch.cuda.set_device(next(self.module.parameters()).device)  # where this thread launches kernels
        return packed_attention

    def capture(self) -> Capture:
        return CudaCapture()

    def is_alive(self) -> bool:
        try:
            torch.zeros(1, device=next(self.module.parameters()).device).item()
        except RuntimeError as error:
            return is_out_of_memory(error)
        return True


def why_too_old(capability: tuple[int, int]) -> str:
    """Why a GPU of that compute capability runs without kernels; empty if they are for it."""
    if capability >= OLDEST:
        return ""
    return "This GPU is older than Ampere, which the kernels are for, so attention runs in plain PyTorch."


def open_model(
    module: CausalLM,
    vocabulary: int,
    *,
    precision: str,
    check: Check,
    is_draft: bool = False,
    cache_dtype: torch.dtype | None = None,
    progress: Progress = lambda done, total: None,
    device: Device | None = None,
) -> RaggedModel:
    """The fastest door that this machine has to ``module``; its ``note`` says what was given up, and why.

    Raises what ``check`` raises on the last rung, and a lack of memory that fewer rows do not overcome.
    """
    if device is None and next(module.parameters()).device.type == "cuda":
        device = Gpu(module)
    known = "" if device is None else device.why_plain()
    if device is None or known:
        model = RaggedModel(module, vocabulary, cache_dtype=cache_dtype)
        check(model)
        model.note = known
        return model
    trial = Trial(module, vocabulary, precision, is_draft)
    return _Climb(module, vocabulary, trial, check, progress, device).model()


@dataclass(frozen=True)
class _Climb:
    """From the fastest rung down to the first that holds."""

    module: CausalLM
    vocabulary: int
    trial: Trial
    check: Check
    progress: Progress
    device: Device

    def model(self) -> RaggedModel:
        reasons: list[str] = []
        for rung in RUNGS[:-1]:
            try:
                model = self._with_room_that_fits(rung)
                model.note, model.steps_down = _note(rung, reasons), True
                return model
            except Exception as error:
                if isinstance(error, LoadCancelled) or lack_of_memory(error) is not None:
                    raise
                if not self.device.is_alive():
                    raise GpuLost(
                        f"The GPU stopped working while its kernels were tried ({first_line(error)}); start again with "
                        "--device cpu, or update the NVIDIA driver and torch."
                    ) from error
                reasons.append(reason_for(error))
            release_cached_memory()  # behind the except clause, where no traceback holds the model any more
        plain = RaggedModel(self.module, self.vocabulary)
        self.check(plain)
        plain.note = _note(RUNGS[-1], reasons)
        return plain

    def _with_room_that_fits(self, rung: Rung) -> DeviceModel:
        """Where the memory lacks for the first room, half as many rows are tried, down to the two of the check."""
        rows = FIRST_ROOM.rows
        while True:
            try:
                return self._open(rung, Room(rows, FIRST_ROOM.slots, FIRST_ROOM.prompt))
            except Exception as error:
                if lack_of_memory(error) is None or rows <= 2:
                    raise
            rows //= 2
            release_cached_memory()

    def _open(self, rung: Rung, room: Room) -> DeviceModel:
        capture = self.device.capture() if rung.has_graphs else None
        model = DeviceModel(
            self.module, self.vocabulary, self.device.attention(), capture, room=room, has_kernels=rung.has_kernels
        )
        self.trial.run(model, self.check, self.progress)
        if rung.has_graphs and not model.graphs.are_on:
            raise CaptureFailed(model.graphs.fault)
        return model


class CaptureFailed(Exception):
    """The passes are right, but no graph can be made of them."""


class GpuLost(BasslineError):
    """Nothing runs on the GPU any more in this process."""


def _note(rung: Rung, reasons: list[str]) -> str:
    """One sentence; the same reason is given once."""
    return f"The model {rung.without}: {'; '.join(dict.fromkeys(reasons))}." if reasons else ""


def reason_for(error: BaseException) -> str:
    """Why a rung was given up, in a few words, and what would mend it where that is known. Never: another model."""
    if isinstance(error, UnsupportedModel):  # of the check, whose advice is meant for the last rung
        return reason_for(error.__cause__) if error.__cause__ is not None else "it gave wrong numbers there"
    if isinstance(error, WrongNumbers):
        return first_line(error)
    if isinstance(error, CaptureFailed):
        return f"its passes cannot be captured as CUDA graphs ({first_line(error)})"
    if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno == errno.EROFS):
        return f"{error.filename or 'the cache of kernels'} cannot be written (give TRITON_CACHE_DIR a folder that can)"
    if isinstance(error, subprocess.CalledProcessError):  # by Triton, which shows nothing of what the compiler said
        lacks = "" if (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file() else " without Python.h"
        return f"the C compiler failed{lacks} (install a compiler and Python's headers, python3-dev)"
    if "C compiler" in str(error):
        return "Triton finds no C compiler (install gcc and Python's headers, python3-dev)"
    return f"{type(error).__name__}: {first_line(error)}".rstrip(".: ")
