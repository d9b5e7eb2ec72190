"""A linear layer with 7-bit weights per channel and 8-bit activations per row, on the CPU."""

from kernels.int8_linear.fbgemm import available
from kernels.int8_linear.module import Int8Linear, replace_linears
from kernels.int8_linear.product import PackedWeight, int8_linear, pack
from kernels.int8_linear.quantize import quantize_weight
from kernels.int8_linear.siblings import join_siblings

__all__ = [
    "Int8Linear",
    "PackedWeight",
    "available",
    "int8_linear",
    "join_siblings",
    "pack",
    "quantize_weight",
    "replace_linears",
]
