"""The product through FBGEMM, which every torch for x86 has.

Quantised tensors are a deprecated corner of torch; nothing outside this file knows about them. ``_int_mm`` (what
torchao's per-token int8 calls) and oneDNN's ``qlinear_pointwise`` give the same numbers at 1.3 to 2.5 times the time
for 4 rows and more, and were no faster at one.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kernels.int8_linear.quantize import INPUT_LEVELS, TINY

_INPUT_ZERO = 128
_packing = threading.Lock()  # the engine and the filters of warnings are settings of the whole process


def available() -> bool:
    """Whether this build of torch has FBGEMM (x86 processors)."""
    return "fbgemm" in torch.backends.quantized.supported_engines


class FbgemmWeight:
    """A weight ``[out, in]`` in FBGEMM's own layout, about one byte per element."""

    def __init__(self, quantized: torch.Tensor, scale: torch.Tensor):
        """int8 ``[out, in]`` in -63 .. 63, float32 ``[out]``."""
        self.out_features, self.in_features = quantized.shape
        zeros = torch.zeros(scale.numel(), dtype=torch.long)
        with _packing:
            engine = torch.backends.quantized.engine
            torch.backends.quantized.engine = "fbgemm"  # where VNNI is found, the default may pack for oneDNN instead
            try:
                with _without_deprecation():
                    weight = torch._make_per_channel_quantized_tensor(quantized, scale.double(), zeros, 0)
                    self._packed = torch.ops.quantized.linear_prepack(weight, None)
            finally:
                torch.backends.quantized.engine = engine

    def unpack(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What it was made of, to the bit."""
        with _packing, _without_deprecation():
            tensor, _ = torch.ops.quantized.linear_unpack(self._packed)
            return tensor.int_repr(), tensor.q_per_channel_scales().float()

    def product(self, rows: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Float32 ``[M, in]`` to float32 ``[M, out]``.

        Each step is either integer or one correctly rounded operation per element, so the scale and the bias are not
        fused into one multiply-add.
        """
        largest = rows.abs().amax(dim=1, keepdim=True).clamp_min_(TINY)  # one norm op would be 6 times as slow
        operation = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        product: torch.Tensor = operation(rows / largest, 1 / INPUT_LEVELS, _INPUT_ZERO, self._packed).mul_(largest)
        return product if bias is None else product.add_(bias)


@contextmanager
def _without_deprecation() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize.*deprecated", category=UserWarning)
        yield
