"""The float32 product on the CPU with one order of summation, so that a row's bits do not depend on the batch."""

from kernels.float_linear.module import RowLinear, make_rows_independent
from kernels.float_linear.native import float_linear, serves

__all__ = ["RowLinear", "float_linear", "make_rows_independent", "serves"]
