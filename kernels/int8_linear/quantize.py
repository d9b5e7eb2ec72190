"""What int8 means here: 7-bit weights per output channel, 8-bit activations per row; and its float twin.

Stock dynamic quantisation scales all rows of a batch together: a row's result then depends on its neighbours, and
perplexity rises by a third. Here every row is divided by its own largest magnitude, so a row alone gives the same bits
as that row in a batch. Weights use 7 of 8 bits: AVX2 adds pairs of u8 x s8 products in 16 bits, and 2 * 255 * 63 still
fits.
"""

import torch

LEVELS = 63  # of a weight, symmetric
INPUT_LEVELS = 127  # of an activation, symmetric
TINY = 1e-30  # below any activation; keeps a row of zeros from dividing by zero


def quantize_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Float ``[out, in]`` to int8 in -63 .. 63 ``[out, in]`` and float32 ``[out]``: weight ~ int8 * scale[:, None]."""
    weight = weight.float()
    scale = weight.abs().amax(dim=1).clamp_min(TINY) / LEVELS
    return torch.round(weight / scale[:, None]).to(torch.int8), scale


def int8_linear_float(
    x: torch.Tensor, quantized: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """The product from the unpacked weight in plain float64 arithmetic: the readable truth for tests."""
    largest = x.double().abs().amax(dim=-1, keepdim=True).clamp_min(TINY)
    levels = torch.round(x.double() / largest * INPUT_LEVELS)
    product = levels @ quantized.double().T * (scale.double() / INPUT_LEVELS) * largest
    return (product if bias is None else product + bias.double()).float()
