"""Root mean square norm and SiLU in plain torch: the readable truth, and what is done where no loop serves."""

import torch
from torch import Tensor
from torch.nn import functional


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis of ``x [..., H]``; ``weight [H]``.

    In float32 or wider; the result has the type that ``x`` and ``weight`` promote to, as transformers' norms have.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * normed.to(x.dtype)


def silu(x: Tensor) -> Tensor:
    """``x / (1 + exp(-x))``."""
    return functional.silu(x)
