"""The logit statistics in plain torch."""

from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 128  # logits that are looked at together when the largest are sought


@dataclass(frozen=True)
class LogitStats:
    """Of each row x of logits ``[T, V]``, with its factor f.

    ``total`` ``[T]``: log sum exp x; ``scaled_total`` ``[T]``: log sum exp f x; ``maxima`` ``[T, V // CHUNK]``: the
    largest of every whole chunk of neighbours.
    """

    total: Tensor
    scaled_total: Tensor
    maxima: Tensor


def logit_stats(logits: Tensor, factors: Tensor) -> LogitStats:
    """Row by row, so that what it needs in between stays in the processor's cache."""
    rows = list(zip(logits, factors, strict=True))
    nothing = logits.new_empty(0)
    return LogitStats(
        torch.stack([row.logsumexp(-1) for row, _ in rows]) if rows else nothing,
        torch.stack([(row * factor).logsumexp(-1) for row, factor in rows]) if rows else nothing,
        logits[:, : logits.shape[1] // CHUNK * CHUNK].unflatten(1, (-1, CHUNK)).amax(-1),
    )
