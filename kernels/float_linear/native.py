"""The float32 product compiled for this very processor.

torch's own chooses its order of summation by the shape of the batch, so that a row's last bits, and once in a while a
token, depend on its neighbours. For the few rows of a decoding step it also takes longer than memory needs to deliver
the weights.
"""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from kernels import llvm, thread_pool
from kernels.float_linear.loops import Tile, linear_module
from kernels.once import once

NEEDED = frozenset({"avx2", "fma"})


def serves(*tensors: Tensor) -> bool:
    """Whether the loop is for such tensors: float32 on the CPU, on a processor that has what it needs."""
    return is_there() and all(each.is_cpu and each.dtype == torch.float32 for each in tensors)


@once
def is_there() -> bool:
    return not llvm.why_not() and llvm.features() >= NEEDED


def float_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias``: ``x [..., in]``, ``weight [out, in]``, ``bias [out]``; gives ``[..., out]``.

    What the loop is not for, another type or shapes that do not fit, is torch's, which says what is wrong with it.
    """
    given = (x, weight) if bias is None else (x, weight, bias)
    fits = x.dim() > 0 and weight.dim() == 2 and x.shape[-1] == weight.shape[1]
    if not (fits and serves(*given) and (bias is None or bias.shape == weight.shape[:1])) or needs_gradient(*given):
        return functional.linear(x, weight, bias)
    outputs, inputs = weight.shape
    rows = _rows_of(x.reshape(-1, inputs) if inputs else x.new_zeros(x.shape[:-1].numel(), 0))
    weight = _rows_of(weight)
    out = torch.empty(len(rows), outputs)
    if out.numel():
        bias = _no_bias(outputs) if bias is None else bias.contiguous()
        sizes = (len(rows), inputs, outputs, rows.stride(0), weight.stride(0))
        addresses = (each.data_ptr() for each in (rows, weight, bias, out))
        thread_pool.thread_pool().wake()
        _compiled()(*addresses, *sizes, min(thread_pool.pieces(), outputs))
    return out.view(*x.shape[:-1], outputs)


def needs_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(each.requires_grad for each in tensors)


def _rows_of(matrix: Tensor) -> Tensor:
    """Its numbers one behind the other; rows may lie apart."""
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


@once
def _no_bias(outputs: int) -> Tensor:
    return torch.zeros(outputs)


@once
def _compiled() -> Callable[..., None]:
    tile = Tile(4, 6) if "avx512f" in llvm.features() else Tile(2, 3)
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 6
    return thread_pool.compiled(linear_module(tile)).function("linear", *kinds)
