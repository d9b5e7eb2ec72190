"""Philox-4x32-10 on the device: the same bits as ``torch.py``, word for word."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def philox_words(c0, c1, c2, c3, k0, k1):
    """The device function other kernels call; all arguments and the four results are uint32 blocks."""
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), c0 * 0xD2511F53
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), c2 * 0xCD9E8D57
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + 0x9E3779B9, k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def uniform_of(word):
    """float32 in (0, 1) from a uint32 block, as ``torch.uniform`` does it."""
    return tl.minimum(word.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10, 0.99999994)


@triton.jit
def _uniform_kernel(out, seed, candidate, position, index, purpose, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    key = tl.load(seed + at, mask=inside, other=0)
    c0 = tl.load(candidate + at, mask=inside, other=0).to(tl.uint32)
    c1 = tl.load(position + at, mask=inside, other=0).to(tl.uint32)
    c2 = tl.load(index + at, mask=inside, other=0).to(tl.uint32)
    c3 = tl.full([BLOCK], 0, tl.uint32) + purpose.to(tl.uint32)
    k0, k1 = (key & 0xFFFFFFFF).to(tl.uint32), ((key >> 32) & 0xFFFFFFFF).to(tl.uint32)
    word, _, _, _ = philox_words(c0, c1, c2, c3, k0, k1)
    tl.store(out + at, uniform_of(word), mask=inside)


def uniform(seed: Tensor, candidate: Tensor, position: Tensor, index: Tensor, purpose: int) -> Tensor:
    """See ``kernels.philox.torch.uniform``: same arguments, same bits."""
    parts = torch.broadcast_tensors(seed, candidate, position, index)
    flat = [part.contiguous().view(-1) for part in parts]
    out = torch.empty(parts[0].shape, dtype=torch.float32, device=seed.device)
    block = 256
    _uniform_kernel[(triton.cdiv(out.numel(), block),)](
        out, *flat, purpose, out.numel(), BLOCK=block, enable_fp_fusion=False
    )
    return out
