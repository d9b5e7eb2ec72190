"""What choosing a token needs to know of a whole row of logits, from one look at it."""

from torch import Tensor

from kernels.survey import native
from kernels.survey.torch import CHUNK, Survey

__all__ = ["CHUNK", "Survey", "survey"]


def survey(logits: Tensor, factors: Tensor) -> Survey:
    """``logits`` ``[T, V]``, ``factors`` ``[T]``: what each row is multiplied with to be sampled from."""
    return native.survey(logits, factors)
