"""The int8 product of a layer, by the fastest way there is on this processor. All ways give the same bits."""

from typing import Protocol

import torch

from kernels.int8_linear import native
from kernels.int8_linear.fbgemm import FbgemmWeight


class PackedWeight(Protocol):
    """A weight ``[out_features, in_features]`` as one of the ways wants it laid out."""

    out_features: int
    in_features: int

    def product(self, rows: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Float32 ``[M, in]`` to float32 ``[M, out]``; a row's bits do not depend on the other rows."""

    def unpack(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The int8 ``[out, in]`` and the float32 ``[out]`` it was packed from, to the bit."""


def pack(quantized: torch.Tensor, scale: torch.Tensor) -> PackedWeight:
    """Int8 ``[out, in]`` in -63 .. 63 with float32 scales ``[out]``. CPU only."""
    ways = native.variants()
    return native.NativeWeight(quantized, scale, ways[0]) if ways else FbgemmWeight(quantized, scale)


def int8_linear(x: torch.Tensor, weight: PackedWeight, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ weight.T + bias`` for float32 ``x [..., in]``, giving float32 ``[..., out]``."""
    return weight.product(x.reshape(-1, weight.in_features), bias).view(*x.shape[:-1], weight.out_features)
