"""Root mean square norm and SiLU as compiled loops: one call where torch makes several.

What a loop is not for, another type or device or a shape it cannot read, torch does: a loop would read, and write,
whatever lies there.
"""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm, thread_pool
from kernels.elementwise import torch as plain
from kernels.elementwise.loops import elementwise_module
from kernels.once import once

_ALONE = 1 << 13  # elements that are done before another thread would have begun


def serves(x: Tensor) -> bool:
    """Whether the loops are for such a tensor: rows of float32 on the CPU, of any width."""
    return x.is_cpu and x.dtype == torch.float32 and x.layout == torch.strided and x.dim() > 0 and not llvm.why_not()


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis of ``x [..., H]``; ``weight [H]``."""
    if not (serves(x) and serves(weight) and weight.shape == x.shape[-1:]):
        return plain.rms_norm(x, weight, eps)
    x, weight = x.contiguous(), weight.contiguous()
    out, width = torch.empty(x.shape), x.shape[-1]
    if x.numel():
        run = _compiled()[0]
        run(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.numel() // width, width, eps, _pieces(x))
    return out


def silu(x: Tensor) -> Tensor:
    """``x / (1 + exp(-x))``, a new tensor. Rows of ``x [..., H]`` may lie apart in memory, as a half of them does."""
    if not serves(x):
        return plain.silu(x)
    out = torch.empty(x.shape)
    if not x.numel():
        return out
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    _compiled()[1](rows.data_ptr(), out.data_ptr(), *rows.shape, rows.stride(0), _pieces(rows))
    return out


def _pieces(x: Tensor) -> int:
    if x.numel() <= _ALONE:
        return 1
    thread_pool.thread_pool().wake()
    return min(thread_pool.pieces(), x.numel() // x.shape[-1])


@once
def _compiled() -> list[Callable[..., None]]:
    compiled = thread_pool.compiled(elementwise_module())
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    rows = [pointer, pointer, number, number, number, number]
    norm = [pointer, pointer, pointer, number, number, ctypes.c_float, number]
    functions = {"rms_norm": norm, "silu": rows}
    return [compiled.function(name, *kinds) for name, kinds in functions.items()]
