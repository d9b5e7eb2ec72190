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

import torch

from engine.backends.device import Device
from engine.backends.memory import lack_of_memory, release_cached_memory
from engine.backends.registry import device_of
from engine.contract import BasslineError, LoadCancelled
from engine.models.causal_lm import CausalLM
from engine.models.errors import UnsupportedModel
from engine.models.room import Room
from engine.sampler.device_model import FIRST_ROOM, DeviceModel
from engine.sampler.faults import first_line
from engine.sampler.ragged_model import RaggedModel, is_spread
from engine.sampler.trial import Trial, WrongNumbers

Check = Callable[[RaggedModel], None]  # raises UnsupportedModel: see ``self_check.check_ragged``
_SPREAD = "The model is spread over several GPUs, so it runs without captured graphs and with plain attention."
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

    ``device``: what ``module`` is on; a test gives its own. Raises what ``check`` raises on the last rung, and a lack
    of memory that fewer rows do not overcome.
    """
    if device is None:
        device = device_of(next(module.parameters()).device)
    known = "" if device.is_host else _SPREAD if is_spread(module) else device.why_plain()
    if device.is_host or known:
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
        return f"its passes cannot be captured as graphs ({first_line(error)})"
    if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno == errno.EROFS):
        return f"{error.filename or 'the cache of kernels'} cannot be written (give TRITON_CACHE_DIR a folder that can)"
    if isinstance(error, subprocess.CalledProcessError):  # by Triton, which shows nothing of what the compiler said
        lacks = "" if (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file() else " without Python.h"
        return f"the C compiler failed{lacks} (install a compiler and Python's headers, python3-dev)"
    if "C compiler" in str(error):
        return "Triton finds no C compiler (install gcc and Python's headers, python3-dev)"
    return f"{type(error).__name__}: {first_line(error)}".rstrip(".: ")
