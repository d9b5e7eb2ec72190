"""Philox-4x32-10 in plain torch; the reference for ``triton.py``. Unsigned words travel in int64 tensors."""

import torch
from torch import Tensor

MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Four random 32-bit words for each counter.

    ``counter``: four int64 tensors that broadcast together, each in [0, 2**32); ``key`` likewise, two.
    Returns four int64 tensors of the broadcast shape, each in [0, 2**32).
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        # The 64-bit product wraps as a signed number, yet its bits are right: mask after every shift.
        product0, product1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        high0, high1 = (product0 >> 32) & MASK, (product1 >> 32) & MASK
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, product1 & MASK, high0 ^ c3 ^ k1, product0 & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


def uniform(seed: Tensor, candidate: Tensor, position: Tensor, index: Tensor, purpose: int) -> Tensor:
    """One float32 in (0, 1) for each counter; never 0 and never 1.

    All arguments are int64 tensors that broadcast together; ``seed`` in [0, 2**63), the others in [0, 2**32).
    Close to 0 the numbers keep 32 bits of resolution, which is the end that decides an argmax.
    """
    key = (seed & MASK, (seed >> 32) & MASK)
    word = philox((candidate, position, index, torch.full_like(candidate, purpose)), key)[0]
    return (word.to(torch.float32) * 2.0**-32 + 2.0**-33).clamp(max=1.0 - 2.0**-24)


def gumbel(seed: Tensor, candidate: Tensor, position: Tensor, index: Tensor, purpose: int) -> Tensor:
    """Standard Gumbel noise, float32: argmax over ids of log p(id) + gumbel(..., id, ...) draws from p."""
    exponential = -torch.log1p(-uniform(seed, candidate, position, index, purpose))
    return -torch.log(exponential)
