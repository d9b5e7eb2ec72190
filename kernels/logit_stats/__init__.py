"""Statistics of a whole row of logits that choosing a token needs: sums of exponentials, and maxima."""

from torch import Tensor

from kernels.logit_stats import native
from kernels.logit_stats.torch import CHUNK, LogitStats

__all__ = ["CHUNK", "LogitStats", "logit_stats"]


def logit_stats(logits: Tensor, factors: Tensor) -> LogitStats:
    """``logits`` ``[T, V]``, ``factors`` ``[T]``: what each row is multiplied with to be sampled from."""
    return native.logit_stats(logits, factors)
