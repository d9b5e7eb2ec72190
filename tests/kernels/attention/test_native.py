"""Compiled attention against the readable twin in float64, and a token alone against the token in a line."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.attention import native
from kernels.attention.torch import packed_attention
from tests.kernels.guards import guarded_input, guarded_output

pytestmark = pytest.mark.skipif(bool(native.why_not()), reason=native.why_not() or "compiled")


class Line:
    """Some rows with some tokens each, behind a prompt, in slabs with room left over that holds nonsense."""

    def __init__(self, counts, starts, prompt, groups=2, heads=7, size=64, value_size=0, *, seed=0, sinks=False):
        draw = torch.Generator().manual_seed(seed)
        value_size = value_size or size

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=draw)

        slots = max(start + count for start, count in zip(starts, counts, strict=True))
        self.query = random(sum(counts), groups * heads, size)
        self.prefix = (random(1, groups, prompt, size), random(1, groups, prompt, value_size)) if prompt else None
        slabs = random(len(counts), groups, slots + 5, size), random(len(counts), groups, slots + 5, value_size)
        self.suffix = slabs[0][:, :, :slots], slabs[1][:, :, :slots]
        self.rows = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
        self.slots = torch.cat(
            [torch.arange(start, start + count) for start, count in zip(starts, counts, strict=True)]
        )
        self.starts, self.prompt = torch.tensor([0, *counts]).cumsum(0), prompt
        self.options = {"scaling": size**-0.5, "sinks": random(groups * heads) if sinks else None}

    def compiled(self, **options) -> torch.Tensor:
        return native.packed_attention(
            self.query, self.prefix, self.suffix, self.rows, self.slots, **self.options | options
        )

    def twin(self, **options) -> torch.Tensor:
        prefix = None if self.prefix is None else tuple(part.double() for part in self.prefix)
        suffix = tuple(part.double() for part in self.suffix)
        places = (self.starts, self.slots + self.prompt, torch.tensor([self.prompt]))
        return packed_attention(self.query.double(), prefix, suffix, *places, **self.options | options)


def converted(pair, dtype):
    """Keys and values in another type; None where there are none."""
    return pair and (pair[0].to(dtype), pair[1].to(dtype))


def agree(line: Line, *, within: float = 5e-6, **options) -> None:
    torch.testing.assert_close(line.compiled(**options).double(), line.twin(**options), rtol=0, atol=within)


@pytest.mark.parametrize(
    ("counts", "starts", "prompt"),
    [([1], [0], 0), ([1, 1], [3, 7], 0), ([1, 4, 2], [0, 9, 30], 17), ([1, 1], [0, 0], 1), ([33], [200], 500)],
)
def test_ragged_rows(counts, starts, prompt):
    agree(Line(counts, starts, prompt))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("heads", [1, 2, 4, 7, 8])
@pytest.mark.parametrize("size", [64, 80, 96, 128, 256])
def test_sizes_of_heads(groups, heads, size):
    agree(Line([5, 1], [0, 30], 21, groups, heads, size))


@pytest.mark.parametrize(("size", "value_size"), [(4, 4), (12, 12), (96, 128), (192, 128), (64, 8)])
def test_odd_sizes_of_heads(size, value_size):
    agree(Line([2, 1], [4, 0], 9, 2, 3, size, value_size))


@pytest.mark.parametrize("window", [1, 3, 20, 33, 200])
@pytest.mark.parametrize("prompt", [0, 40])
def test_window(window, prompt):
    agree(Line([5, 1, 2], [0, 30, 2], prompt), window=window)


def test_softcap():
    agree(Line([5, 1, 2], [0, 30, 2], 40), softcap=0.7)
    agree(Line([5, 1, 2], [0, 30, 2], 40), within=2e-5, softcap=50.0, window=7)  # a score's last bit, times the cap


def test_sinks():
    agree(Line([5, 1, 2], [0, 30, 2], 40, sinks=True))
    agree(Line([5, 1, 2], [0, 30, 2], 40, sinks=True), window=3, softcap=2.0)


def test_scores_far_apart():
    """One key takes all, or all are alike: exp must neither overflow nor lose what counts."""
    for size in (1e-4, 30.0, 1e4):
        line = Line([3, 1], [0, 12], 25)
        line.query *= size
        torch.testing.assert_close(line.compiled().double(), line.twin(), rtol=0, atol=1e-4 if size > 1e3 else 1e-5)


def test_a_query_across_memory():
    """Heads before tokens, as models hand them over."""
    line = Line([2, 1], [4, 0], 9)
    line.query = line.query.transpose(0, 1).contiguous().transpose(0, 1)
    agree(line)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 40)), min_size=1, max_size=6), st.integers(0, 70))
def test_any_line(rows, prompt):
    agree(Line([count for count, _ in rows], [start for _, start in rows], prompt, 2, 3, 16))


def test_a_token_has_the_same_bits_whatever_else_is_in_the_line():
    line = Line([1, 5, 3, 1], [7, 20, 0, 64], 50)
    together = line.compiled()
    for token in range(len(together)):
        alone = native.packed_attention(
            line.query[token : token + 1],
            line.prefix,
            line.suffix,
            line.rows[token : token + 1],
            line.slots[token : token + 1],
            **line.options,
        )
        assert torch.equal(alone[0], together[token])


def test_the_prompt_in_the_prefix_or_in_the_slab():
    """A prompt's own pass, a chunk of it behind the rest, and an answer behind it all sum in one order."""
    line = Line([6], [10], 30)
    keys, values = (torch.cat([own, more], dim=2) for own, more in zip(line.prefix, line.suffix, strict=True))
    whole = native.packed_attention(line.query, None, (keys, values), line.rows, line.slots + 30, **line.options)
    assert torch.equal(whole, line.compiled())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_another_type_is_left_to_torch(dtype):
    line = Line([2, 1, 3], [4, 0, 9], 9, sinks=True)
    want = line.compiled(window=7, softcap=2.0)
    line.query = line.query.to(dtype)
    line.prefix, line.suffix = converted(line.prefix, dtype), converted(line.suffix, dtype)
    found = line.compiled(window=7, softcap=2.0)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), want, rtol=0, atol=5e-6 if dtype == torch.float64 else 0.05)


def test_one_of_them_of_another_type_is_left_to_torch():
    line = Line([2, 1], [4, 0], 9)
    want = line.compiled()
    line.suffix = converted(line.suffix, torch.float64)
    torch.testing.assert_close(line.compiled(), want, rtol=0, atol=5e-6)


@pytest.mark.parametrize(("size", "value_size"), [(5, 5), (10, 8), (8, 3), (1, 1)])
@pytest.mark.parametrize("prompt", [0, 9])
def test_heads_of_odd_sizes_are_left_to_torch(size, value_size, prompt):
    agree(Line([2, 1], [4, 0], prompt, 2, 3, size, value_size), window=6)


def test_nothing_beside_the_line_is_read_or_written(monkeypatch):
    for counts, starts, prompt, size in (([1], [0], 0, 4), ([1, 4, 2], [0, 9, 30], 17, 12), ([3, 1], [2, 5], 16, 64)):
        line = Line(counts, starts, prompt, 2, 3, size, sinks=True)
        line.query = guarded_input(line.query)
        line.suffix = tuple(guarded_input(part) for part in line.suffix)
        line.prefix = line.prefix and tuple(guarded_input(part) for part in line.prefix)
        native._kept.__dict__.clear()  # so that its room is made here, too
        with guarded_output(monkeypatch):
            found = line.compiled()
        torch.testing.assert_close(found.double(), line.twin(), rtol=0, atol=5e-6)
    native._kept.__dict__.clear()


def test_indices_and_sinks_with_gaps():
    line = Line([2, 1], [4, 0], 9, sinks=True)
    want = line.compiled()
    line.rows, line.slots, line.options["sinks"] = (
        torch.stack([part, 0 * part], dim=1)[:, 0] for part in (line.rows, line.slots, line.options["sinks"])
    )
    assert not line.rows.is_contiguous()
    assert torch.equal(line.compiled(), want)


@pytest.mark.parametrize(("what", "value"), [("rows", 2), ("rows", -1), ("slots", 6), ("slots", -1)])
def test_a_row_or_slot_that_is_not_there_is_refused(what, value):
    """It would be read from whatever lies there; another engine's step would look like this."""
    line = Line([2, 1], [4, 0], 9)
    line.compiled()  # what was looked at before says nothing about the next
    wrong = getattr(line, what).clone()
    wrong[1] = value
    setattr(line, what, wrong)
    with pytest.raises(ValueError, match="slabs of 6 slots"):
        line.compiled()


def test_what_does_not_belong_together_is_refused():
    line = Line([2, 1], [4, 0], 9, 2, 3, 16)
    keys, values = line.suffix
    prompt = line.prefix
    narrow = torch.randn(3, 6, 12)
    for query, prefix, suffix, rows in (
        (narrow, prompt, line.suffix, line.rows),
        (line.query[:, :5], prompt, line.suffix, line.rows),
        (line.query, (prompt[0][:, :1], prompt[1]), line.suffix, line.rows),
        (line.query, (prompt[0][..., :12], prompt[1]), line.suffix, line.rows),
        (line.query, (prompt[0], prompt[1][:, :, :8]), line.suffix, line.rows),
        (line.query, prompt, (keys, values[:1]), line.rows),
        (line.query, prompt, (keys, values[:, :, :5]), line.rows),
        (line.query, prompt, line.suffix, line.rows[:2]),
        (line.query, prompt, line.suffix, line.rows.int()),
    ):
        with pytest.raises(ValueError, match=r"one attention|one int64"):
            native.packed_attention(query, prefix, suffix, rows, line.slots, **line.options)
    with pytest.raises(ValueError, match="one attention"):
        line.compiled(sinks=torch.randn(5))


def test_an_empty_line():
    line = Line([1], [0], 4)
    empty = torch.empty(0, dtype=torch.long)
    out = native.packed_attention(line.query[:0], line.prefix, line.suffix, empty, empty, **line.options)
    assert out.shape == (0, 14, 64)


def test_a_head_of_an_odd_size_is_left_to_torch():
    assert "multiple of 4" in native.why_not(10, 10)
    assert native.why_not(64, 64) == ""
