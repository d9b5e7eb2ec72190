"""Norms and activations between the products, on the CPU: one call each, where torch makes half a dozen."""

from kernels.elementwise.modules import compile_elementwise
from kernels.elementwise.native import rms_norm, serves, silu

__all__ = ["compile_elementwise", "rms_norm", "serves", "silu"]
