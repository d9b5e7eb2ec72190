"""A linear layer with 7-bit weights per channel and 8-bit activations per row, on the CPU."""

from kernels.int8_linear.module import Int8Linear, replace_linears
from kernels.int8_linear.siblings import join_siblings
from kernels.int8_linear.torch import PackedWeight, available, int8_linear, quantize_weight

__all__ = [
    "Int8Linear",
    "PackedWeight",
    "available",
    "int8_linear",
    "join_siblings",
    "quantize_weight",
    "replace_linears",
]
