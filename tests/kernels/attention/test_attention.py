"""The two parts together equal one causal attention over the concatenated keys, in float64."""

import pytest
import torch

from kernels.attention.torch import prefix_suffix_attention, visibility


def one_attention(query, keys, values, position, *, scaling, window, softcap, sinks):
    """One row, written as the textbook does: query ``[Hq, Q, D]``, keys ``[G, N, D]``."""
    repeat = query.shape[0] // keys.shape[0]
    keys, values = keys.repeat_interleave(repeat, 0), values.repeat_interleave(repeat, 0)
    out = torch.empty(*query.shape[:2], values.shape[-1], dtype=query.dtype)
    for head in range(query.shape[0]):
        for q in range(query.shape[1]):
            first = 0 if window is None else max(0, int(position[q]) - window + 1)
            seen = slice(first, int(position[q]) + 1)
            scores = keys[head, seen] @ query[head, q] * scaling
            if softcap is not None:
                scores = softcap * torch.tanh(scores / softcap)
            weights = scores.exp()
            total = weights.sum() + (0 if sinks is None else sinks[head].exp())
            out[head, q] = (weights / total) @ values[head, seen]
    return out


@pytest.mark.parametrize("prefix_length", [0, 1, 7, 33])
@pytest.mark.parametrize(("heads", "groups", "dim"), [(4, 4, 8), (8, 2, 16), (7, 1, 5), (8, 1, 64)])
@pytest.mark.parametrize(
    "extra",
    [{}, {"window": 5}, {"softcap": 3.0}, {"sinks": True}, {"window": 1, "softcap": 2.0, "sinks": True}],
    ids=str,
)
def test_equals_one_causal_attention(prefix_length, heads, groups, dim, extra):
    generator = torch.Generator().manual_seed(heads * 100 + prefix_length)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lengths, count, slots = [0, 9, 3], 4, 16  # tokens already in each row's slab; queries per row; slab size
    prefix = (normal(1, groups, prefix_length, dim), normal(1, groups, prefix_length, dim))
    suffix = (normal(3, groups, slots, dim), normal(3, groups, slots, dim))
    query = normal(3, heads, count, dim)
    positions = prefix_length + torch.tensor(lengths)[:, None] + torch.arange(count)
    window, softcap = extra.get("window"), extra.get("softcap")
    sinks = normal(heads) if extra.get("sinks") else None

    got = prefix_suffix_attention(
        query,
        prefix if prefix_length else None,
        suffix,
        visibility(positions, prefix_length, slots, window),
        scaling=0.3,
        softcap=softcap,
        sinks=sinks,
    )
    for row in range(3):
        keys = torch.cat([prefix[0][0], suffix[0][row]], dim=1)
        values = torch.cat([prefix[1][0], suffix[1][row]], dim=1)
        options = {"scaling": 0.3, "window": window, "softcap": softcap, "sinks": sinks}
        want = one_attention(query[row], keys, values, positions[row], **options)
        torch.testing.assert_close(got[row], want, rtol=0, atol=1e-13)


def test_a_stale_slot_is_never_seen():
    """Rejected drafts stay in the slab until they are written over: garbage there must not reach the output."""
    query = torch.randn(2, 4, 3, 8)
    suffix = (torch.randn(2, 2, 12, 8), torch.randn(2, 2, 12, 8))
    positions = torch.tensor([[4, 5, 6], [0, 1, 2]])
    mask = visibility(positions, 0, 12)
    before = prefix_suffix_attention(query, None, suffix, mask, scaling=0.3)
    for tensor in suffix:
        tensor[0, :, 7:] = 1e4
        tensor[1, :, 3:] = -1e4
    torch.testing.assert_close(prefix_suffix_attention(query, None, suffix, mask, scaling=0.3), before)


def test_half_precision_is_computed_in_float32():
    query = torch.randn(1, 2, 1, 8) * 10
    suffix = (torch.randn(1, 2, 40, 8) * 10, torch.randn(1, 2, 40, 8))
    mask = visibility(torch.tensor([[39]]), 0, 40)
    half = [t.bfloat16() for t in suffix]
    got = prefix_suffix_attention(query.bfloat16(), None, (half[0], half[1]), mask, scaling=0.35)
    want = prefix_suffix_attention(
        query.bfloat16().float(), None, (half[0].float(), half[1].float()), mask, scaling=0.35
    )
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), want, rtol=2**-7, atol=1e-3)
