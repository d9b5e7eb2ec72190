"""The survey as a compiled loop: two looks at each row where torch takes six."""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm, team
from kernels.once import once
from kernels.survey import torch as plain
from kernels.survey.loops import survey_module
from kernels.survey.torch import CHUNK, Survey


def serves(logits: Tensor, factors: Tensor) -> bool:
    """Whether the loop is for such tensors: rows of float32 on the CPU, of a chunk at least, and a factor for each."""
    return (
        logits.is_cpu
        and factors.is_cpu
        and logits.dtype == torch.float32
        and logits.dim() == 2
        and logits.shape[1] >= CHUNK
        and len(logits) > 0
        and factors.shape == logits.shape[:1]
        and not llvm.why_not()
    )


def survey(logits: Tensor, factors: Tensor) -> Survey:
    """See ``kernels.survey.torch``, which does what the loop is not for.

    Rows may lie apart in memory, as those of a padded vocabulary do.
    """
    if not serves(logits, factors):
        return plain.survey(logits, factors)
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


@once
def _compiled() -> Callable[..., None]:
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 4
    return team.compiled(survey_module()).function("survey", *kinds)
