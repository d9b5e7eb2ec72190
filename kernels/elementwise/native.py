"""Root mean square norm and SiLU as compiled loops: one call where torch makes half a dozen, each of microseconds."""

import ctypes
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm
from kernels.elementwise.loops import elementwise_module
from kernels.vector import WIDTH

_ALONE = 1 << 15  # elements below which waking another thread takes longer than the work


def serves(x: Tensor) -> bool:
    """Whether the loops are for such a tensor: float32 on the CPU, rows a multiple of 16 wide."""
    return x.is_cpu and x.dtype == torch.float32 and x.shape[-1] % WIDTH == 0 and not llvm.why_not()


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis of ``x [..., H]``; ``weight [H]``."""
    x = x.contiguous()
    out, width = torch.empty_like(x), x.shape[-1]
    norm, _ = _compiled()
    norm(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.numel() // width, width, eps, _threads(x))
    return out


def silu(x: Tensor) -> Tensor:
    """``x / (1 + exp(-x))``, a new tensor. Rows of ``x [..., H]`` may lie apart in memory, as a half of them does."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty(x.shape)
    _, activation = _compiled()
    activation(rows.data_ptr(), out.data_ptr(), len(rows), width, rows.stride(0), _threads(x))
    return out


def _threads(x: Tensor) -> int:
    return 1 if x.numel() <= _ALONE else torch.get_num_threads()


@functools.cache
def _compiled() -> tuple[Callable[..., None], Callable[..., None]]:
    compiled = llvm.Compiled(elementwise_module())
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    norm = compiled.function("rms_norm", *[pointer] * 3, number, number, ctypes.c_float, ctypes.c_int)
    activation = compiled.function("silu", pointer, pointer, *[number] * 3, ctypes.c_int)
    norm.keeper = activation.keeper = compiled  # type: ignore[attr-defined]  # the code is let go with them
    return norm, activation
