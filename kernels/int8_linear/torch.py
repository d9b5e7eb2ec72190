"""Row-scaled int8 matrix product through FBGEMM, with its float twin.

Stock dynamic quantisation scales all rows of a batch together: a row's result then depends on its neighbours, and
perplexity rises by a third. Here every row is divided by its own largest magnitude first, so one fixed scale fits
all rows and a row alone gives the same bits as that row in a batch.

Weights use 7 of 8 bits: AVX2 without VNNI adds pairs of u8 x s8 products in 16 bits, and 2 * 255 * 63 still fits.
Quantised tensors are a deprecated corner of torch; nothing outside this file knows about them. Faster paths were
looked for: ``_int_mm`` (what torchao's per-token int8 calls) and oneDNN's ``qlinear_pointwise`` give the same
numbers at 1.3 to 2.5 times the time for 4 rows and more, and were no faster at one.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import torch

LEVELS = 63  # 7 bits, symmetric
_INPUT_SCALE = 1 / 127
_INPUT_ZERO = 128
_TINY = 1e-30  # below any activation; keeps a row of zeros from dividing by zero


@dataclass(frozen=True)
class PackedWeight:
    """A weight ``[out_features, in_features]`` in FBGEMM's own layout (about one byte per element)."""

    packed: Any
    out_features: int
    in_features: int


def available() -> bool:
    """Whether this build of torch has FBGEMM (x86 processors)."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def quantize_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Float ``[out, in]`` to int8 in -63 .. 63 ``[out, in]`` and float32 ``[out]``: weight ~ int8 * scale[:, None]."""
    weight = weight.float()
    scale = weight.abs().amax(dim=1).clamp_min(_TINY) / LEVELS
    return torch.round(weight / scale[:, None]).to(torch.int8), scale


def pack(quantized: torch.Tensor, scale: torch.Tensor) -> PackedWeight:
    """Lay out int8 ``[out, in]`` with float32 scales ``[out]`` for the product below. CPU only."""
    zeros = torch.zeros(scale.numel(), dtype=torch.long)
    engine = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"  # where VNNI is found, the default engine may pack for oneDNN instead
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*quantize.*deprecated", category=UserWarning)
            weight = torch._make_per_channel_quantized_tensor(quantized, scale.double(), zeros, 0)
            packed = torch.ops.quantized.linear_prepack(weight, None)
    finally:
        torch.backends.quantized.engine = engine
    return PackedWeight(packed, *quantized.shape)


def unpack(weight: PackedWeight) -> tuple[torch.Tensor, torch.Tensor]:
    """What ``pack`` was given: int8 ``[out, in]`` and float32 ``[out]``, to the bit."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize.*deprecated", category=UserWarning)
        tensor, _ = torch.ops.quantized.linear_unpack(weight.packed)
        return tensor.int_repr(), tensor.q_per_channel_scales().float()


def int8_linear(x: torch.Tensor, weight: PackedWeight, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``x @ weight.T + bias`` for float32 ``x [..., in]``, giving float32 ``[..., out]``.

    Bits of a row do not depend on the other rows: each step is either integer or one correctly rounded operation per
    element (so the scale and the bias are not fused into one multiply-add).
    """
    rows = x.reshape(-1, weight.in_features)
    largest = rows.abs().amax(dim=1, keepdim=True).clamp_min_(_TINY)  # one norm op would be 6 times as slow
    product = product_of(rows / largest, weight).mul_(largest)
    if bias is not None:
        product.add_(bias)
    return product.view(*x.shape[:-1], weight.out_features)


def product_of(rows: torch.Tensor, weight: PackedWeight) -> torch.Tensor:
    """The bare product of rows in -1 .. 1: what a step cannot do without."""
    operation = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
    return operation(rows, _INPUT_SCALE, _INPUT_ZERO, weight.packed)


def int8_linear_float(
    x: torch.Tensor, quantized: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """The same product from the unpacked weight in plain float64 arithmetic: the readable truth for tests."""
    largest = x.double().abs().amax(dim=-1, keepdim=True).clamp_min(_TINY)
    levels = torch.round(x.double() / largest / _INPUT_SCALE)
    product = levels @ quantized.double().T * (_INPUT_SCALE * scale.double()) * largest
    return (product if bias is None else product + bias.double()).float()
