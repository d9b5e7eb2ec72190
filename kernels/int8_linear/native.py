"""The product compiled for this very processor: for few rows, as fast as memory delivers the weights.

Every sum is one of integers and what follows is rounded as FBGEMM rounds it, so all ways give the same bits.

Weights lie in panels of as many output channels as a register has lanes, four inputs of a channel side by side as the
dot-product instructions want them: ``[panels, in / 4, lanes, 4]``. They are stored plus 64, for those instructions
multiply unsigned by signed bytes; what that adds, 64 times the sum of the row, is taken off at the end.
"""

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from kernels import llvm, thread_pool
from kernels.int8_linear.loops import OFFSET, STRIDE, WAYS, DotVariant, linear_module
from kernels.int8_linear.quantize import INPUT_LEVELS
from kernels.once import once


def variants() -> list[DotVariant]:
    """What this processor knows, the fastest first; none where nothing can be compiled."""
    if llvm.why_not():
        return []
    return [way for way in WAYS if any(needed <= llvm.features() for needed in way.needs)]


class NativeWeight:
    """A weight ``[out, in]`` in panels."""

    def __init__(self, quantized: Tensor, scale: Tensor, way: DotVariant):
        """int8 ``[out, in]`` in -63 .. 63, float32 ``[out]``."""
        self.out_features, self.in_features = quantized.shape
        self._run, self._pool = _compiled(way), thread_pool.thread_pool()
        self._scale = scale
        self._width, self._stride = _multiple(self.out_features, way.lanes), _multiple(self.in_features, STRIDE)
        whole = torch.nn.functional.pad(
            quantized, (0, self._stride - self.in_features, 0, self._width - self.out_features)
        )
        fours = whole.view(-1, way.lanes, self._stride // 4, 4).transpose(1, 2)
        self._panels = (fours + OFFSET).contiguous()
        factors = scale.float() * torch.tensor(1 / INPUT_LEVELS)
        self._factors = torch.nn.functional.pad(factors, (0, self._width - self.out_features))
        self._addresses = (self._panels.data_ptr(), self._factors.data_ptr())
        self._no_bias = torch.zeros(self._width)

    def unpack(self) -> tuple[Tensor, Tensor]:
        """What it was made of, to the bit."""
        whole = (self._panels - OFFSET).transpose(1, 2).reshape(self._width, self._stride)
        return whole[: self.out_features, : self.in_features].contiguous(), self._scale

    def product(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        """Float32 ``[M, in]`` to float32 ``[M, out]``. Raises TypeError for another type, ValueError for another width:
        the loop would read numbers of whatever lies there."""
        if not rows.is_cpu or rows.dtype != torch.float32:
            raise TypeError(f"int8 products are of float32 on the CPU, not of {rows.dtype} on {rows.device}")
        if rows.dim() != 2 or rows.shape[1] != self.in_features:
            raise ValueError(f"this weight is for rows of {self.in_features} numbers, not for {list(rows.shape)}")
        count, exact = rows.shape[0], self._width == self.out_features
        if self._stride != self.in_features:
            rows = torch.nn.functional.pad(rows, (0, self._stride - self.in_features))
        bias = self._no_bias if bias is None else self._readable(bias)
        rows, out = rows.contiguous(), torch.empty(count, self._width)
        room = torch.empty(count, self._stride + 8, dtype=torch.uint8)  # integers, magnitude and sum of every row
        self._pool.wake()
        self._run(
            rows.data_ptr(),
            *self._addresses,
            bias.data_ptr(),
            out.data_ptr(),
            room.data_ptr(),
            count,
            self._stride,
            len(self._panels),
            thread_pool.pieces(),
        )
        return out if exact else out[:, : self.out_features]

    def _readable(self, bias: Tensor) -> Tensor:
        """As the loop reads it: float32 one behind the other, as many as the panels have channels."""
        if bias.shape != (self.out_features,) or not bias.is_cpu:
            raise ValueError(f"this weight is for a bias of {self.out_features} numbers, not for {list(bias.shape)}")
        missing = self._width - self.out_features
        return torch.nn.functional.pad(bias.float(), (0, missing)) if missing else bias.float().contiguous()


def _multiple(size: int, of: int) -> int:
    return -(-size // of) * of


@once
def _compiled(way: DotVariant) -> Callable[..., None]:
    kinds = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 4
    return thread_pool.compiled(linear_module(way)).function("linear", *kinds)
