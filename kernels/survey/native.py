"""The survey as a compiled loop: two looks at each row where torch takes six."""

import ctypes
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm, team
from kernels.survey.loops import survey_module
from kernels.survey.torch import CHUNK, Survey


def serves(logits: Tensor) -> bool:
    """Whether the loop is for such a tensor: float32 on the CPU, with a chunk at least."""
    return logits.is_cpu and logits.dtype == torch.float32 and logits.shape[1] >= CHUNK and not llvm.why_not()


def survey(logits: Tensor, factors: Tensor) -> Survey:
    """See ``kernels.survey.torch``. Rows may lie apart in memory, as those of a padded vocabulary do."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    rows, width = logits.shape
    factors = factors.float().contiguous()
    sums, maxima = torch.empty(3, rows), torch.empty(rows, width // CHUNK)
    team.team().wake()
    _compiled()(
        logits.data_ptr(),
        factors.data_ptr(),
        maxima.data_ptr(),
        sums.data_ptr(),
        rows,
        width,
        logits.stride(0),
        min(team.pieces(), rows),
    )
    largest, whole, scaled = sums
    return Survey(largest + whole.log(), largest * factors + scaled.log(), maxima)


@functools.cache
def _compiled() -> Callable[..., None]:
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 4
    return team.compiled(survey_module()).function("survey", *kinds)
