"""The logit statistics as a compiled loop, which reads each row twice where torch reads it six times."""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm, thread_pool
from kernels.logit_stats import torch as plain
from kernels.logit_stats.loops import logit_stats_module
from kernels.logit_stats.torch import CHUNK, LogitStats
from kernels.once import once


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


def logit_stats(logits: Tensor, factors: Tensor) -> LogitStats:
    """See ``kernels.logit_stats.torch``, which does what the loop is not for.

    Rows may lie apart in memory, as those of a padded vocabulary do.
    """
    if not serves(logits, factors):
        return plain.logit_stats(logits, factors)
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    rows, width = logits.shape
    factors = factors.float().contiguous()
    sums, maxima = torch.empty(3, rows), torch.empty(rows, width // CHUNK)
    thread_pool.thread_pool().wake()
    _compiled()(
        logits.data_ptr(),
        factors.data_ptr(),
        maxima.data_ptr(),
        sums.data_ptr(),
        rows,
        width,
        logits.stride(0),
        min(thread_pool.pieces(), rows),
    )
    largest, whole, scaled = sums
    return LogitStats(largest + whole.log(), largest * factors + scaled.log(), maxima)


@once
def _compiled() -> Callable[..., None]:
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 4
    return thread_pool.compiled(logit_stats_module()).function("logit_stats", *kinds)
