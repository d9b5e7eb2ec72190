"""The int8 product as a module that stands where an ``nn.Linear`` stood."""

from typing import TypeVar

import torch
from torch import nn

from kernels.int8_linear.product import int8_linear, pack
from kernels.int8_linear.quantize import quantize_weight

_Module = TypeVar("_Module", bound=nn.Module)


class Int8Linear(nn.Module):
    """``nn.Linear`` for inference on the CPU. Only the packed weight is kept; there is nothing to train or save."""

    bias: torch.Tensor | None

    def __init__(self, quantized: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None):
        """``quantized``: int8 ``[out, in]`` in -63 .. 63; ``scale``: float32 ``[out]``; ``bias``: float32 ``[out]``."""
        super().__init__()
        self.out_features, self.in_features = quantized.shape
        self.packed = pack(quantized, scale)
        self.register_buffer("bias", bias, persistent=False)

    @classmethod
    def from_linear(cls, linear: nn.Linear) -> "Int8Linear":
        bias = None if linear.bias is None else linear.bias.detach().float()
        return cls(*quantize_weight(linear.weight.detach()), bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Float32 ``[..., in]`` to float32 ``[..., out]``."""
        return int8_linear(x, self.packed, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def replace_linears(model: _Module) -> _Module:
    """Put an ``Int8Linear`` in the place of every ``nn.Linear`` inside ``model``, which is changed and returned."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, Int8Linear.from_linear(child))
    return model
