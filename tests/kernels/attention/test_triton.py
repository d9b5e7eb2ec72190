"""The device kernel, in Triton's interpreter, against the torch twin in float64: odd shapes above all."""

from dataclasses import dataclass, replace

import pytest
import torch

from kernels.attention.torch import packed_attention as plain_attention

pytest.importorskip("triton", reason="triton has no wheel for this platform")

from kernels.attention.triton import Tiling, packed_attention

ROUNDING = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True)
class Case:
    """``counts`` queries per row after ``lengths`` tokens in its slab; ``padding`` tokens behind the last row."""

    counts: tuple[int, ...] = (3, 1, 5)
    lengths: tuple[int, ...] = (0, 9, 2)
    prompt: int = 37
    room: int = 40
    heads: int = 8
    groups: int = 2
    dim: int = 16
    value_dim: int | None = None
    window: int | None = None
    softcap: float | None = None
    sinks: bool = False
    padding: int = 0
    slots: int = 24
    dtype: torch.dtype = torch.float32
    tiling: Tiling | None = None


SMALL_TILES = Tiling(prompt_rows=16, prompt_splits=3, suffix_rows=16, suffix_splits=2, keys=16)


def both(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """The kernel's output, and the truth for the very same inputs."""
    generator = torch.Generator().manual_seed(len(repr(case)))

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(case.dtype)

    rows, value_dim = len(case.counts), case.value_dim or case.dim
    starts = torch.tensor([0, *case.counts], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    positions = [case.prompt + n + i for c, n in zip(case.counts, case.lengths, strict=True) for i in range(c)]
    line = (starts, torch.tensor([*positions, *[0] * case.padding], dtype=torch.int32), torch.tensor([case.prompt]))
    query = normal(len(positions) + case.padding, case.heads, case.dim)
    prefix = None
    if case.room:
        prefix = (normal(1, case.groups, case.room, case.dim), normal(1, case.groups, case.room, value_dim))
    suffix = (normal(rows, case.groups, case.slots, case.dim), normal(rows, case.groups, case.slots, value_dim))
    sinks = normal(case.heads) if case.sinks else None
    options = {"scaling": 0.3, "window": case.window, "softcap": case.softcap}
    got = packed_attention(query, prefix, suffix, *line, **options, sinks=sinks, tiling=case.tiling)
    wide = prefix and (prefix[0].double(), prefix[1].double()), (suffix[0].double(), suffix[1].double())
    sinks = None if sinks is None else sinks.double()
    return got, plain_attention(query.double(), *wide, *line, **options, sinks=sinks)


def check(case: Case) -> None:
    got, want = both(case)
    assert got.dtype == case.dtype
    torch.testing.assert_close(got.double(), want, rtol=0, atol=ROUNDING[case.dtype])


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (3, 3), (2, 1), (8, 2), (7, 1), (14, 2), (8, 1)])
def test_heads_that_share_a_key_head(heads, groups):
    check(Case(heads=heads, groups=groups, tiling=SMALL_TILES))


@pytest.mark.parametrize("dim", [64, 80, 96, 128, 256])
def test_head_sizes(dim):
    check(Case(counts=(2, 1), lengths=(0, 3), heads=4, groups=2, dim=dim))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_float32(dtype):
    check(Case(prompt=130, room=130, dtype=dtype, tiling=SMALL_TILES))


@pytest.mark.parametrize(
    "extra",
    [
        {"window": 1},
        {"window": 5},
        {"window": 5, "prompt": 2, "room": 2},
        {"softcap": 3.0},
        {"sinks": True},
        {"window": 20, "softcap": 2.0, "sinks": True},
    ],
    ids=str,
)
def test_windows_softcaps_and_sinks(extra):
    check(replace(Case(tiling=SMALL_TILES), **extra))


@pytest.mark.parametrize(
    "odd",
    [
        {"counts": (0, 4, 0, 1, 0), "lengths": (0, 2, 7, 0, 3)},
        {"counts": (1,), "lengths": (0,)},
        {"counts": (1, 1, 1, 1), "lengths": (0, 23, 7, 1)},
        {"prompt": 1, "room": 1},
        {"prompt": 0, "room": 0},
        {"prompt": 0, "room": 16},
        {"prompt": 16, "room": 16},
        {"prompt": 17, "room": 64},
        {"counts": (33,), "lengths": (0,), "slots": 40, "prompt": 0, "room": 0},
        {"padding": 5},
        {"counts": (0, 0), "lengths": (0, 0), "padding": 2},
        {"dim": 24, "value_dim": 20},
        {"tiling": None},
        {"tiling": Tiling(32, 7, 32, 5, keys=32)},
        {"tiling": Tiling(16, 17, 16, 16, keys=16), "prompt": 300, "room": 300},  # more splits than are joined at once
    ],
    ids=str,
)
def test_odd_shapes(odd):
    check(replace(Case(tiling=SMALL_TILES), **odd))


def test_what_lies_beyond_the_lengths_is_never_read():
    """Room behind the prompt, stale slots and padding hold anything at all, also what is not a number."""
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(5, 4, 16, generator=generator)
    prefix = [torch.randn(1, 2, 32, 16, generator=generator) for _ in range(2)]
    suffix = [torch.randn(2, 2, 24, 16, generator=generator) for _ in range(2)]
    line = (torch.tensor([0, 2, 4]), torch.tensor([20, 21, 17, 18, 0]), torch.tensor([17]))
    clean = packed_attention(query, tuple(prefix), tuple(suffix), *line, scaling=0.3, tiling=SMALL_TILES)
    for tensor in prefix:
        tensor[:, :, 17:] = float("nan")
    for tensor in suffix:
        tensor[0, :, 5:], tensor[1, :, 2:] = float("nan"), float("nan")
    query[4] = float("nan")
    dirty = packed_attention(query, tuple(prefix), tuple(suffix), *line, scaling=0.3, tiling=SMALL_TILES)
    assert torch.equal(clean, dirty)
    assert dirty[4].abs().max() == 0


def test_slabs_of_no_row_change_nothing():
    generator = torch.Generator().manual_seed(2)
    query = torch.randn(4, 4, 16, generator=generator)
    keys, values = (torch.randn(5, 2, 24, 16, generator=generator) for _ in range(2))
    line = (torch.tensor([0, 3, 4]), torch.tensor([0, 1, 2, 7]), torch.tensor([0]))
    some = packed_attention(query, None, (keys[:2], values[:2]), *line, scaling=0.3, tiling=SMALL_TILES)
    assert torch.equal(packed_attention(query, None, (keys, values), *line, scaling=0.3, tiling=SMALL_TILES), some)


def test_the_choice_of_tiles_fills_the_chip_and_fits_the_sizes():
    """132 processors, 7 query heads per key head, 4 key heads: a 7B model with grouped queries."""

    def choose(tokens, rows, prompt):
        return Tiling.choose(tokens, rows, 7, 4, 256, prompt, 512, processors=132)

    one, many = choose(1, 1, 8192), choose(160, 32, 8192)
    assert one.prompt_rows == 16
    assert one.prompt_splits == 8192 // 256
    assert many.prompt_rows == 128
    assert -(-160 * 7 // 128) * 4 * many.prompt_splits >= 2 * 132
    assert choose(8, 8, 0).prompt_splits == 0
    assert choose(8, 8, 100).prompt_splits == 1
    whole = Tiling.choose(2048, 1, 7, 4, 256, 0, 32_768, processors=132)  # a chunk of a prompt fills the chip by itself
    assert whole.suffix_splits == 1
    for tokens, rows, heads in [(1, 1, 100), (300, 1, 1), (7, 7, 71)]:  # a row's heads always fit into one tile
        assert Tiling.choose(tokens, rows, heads, 1, 64, 64, 64, processors=132).suffix_rows >= heads
