"""Statistics of the logits: compiled against torch in float64, at all widths, and each row by itself."""

import pytest
import torch

from kernels import llvm
from kernels.logit_stats import CHUNK, logit_stats, native
from kernels.logit_stats.torch import logit_stats as reference
from tests.kernels.guards import guarded_input, guarded_output

compiled = pytest.mark.skipif(bool(llvm.why_not()), reason=llvm.why_not() or "compiled")
WIDTHS = [CHUNK, CHUNK + 1, CHUNK + 15, CHUNK + 16, 3 * CHUNK - 1, 4096, 151665, 151936]


def agrees(found, logits, factors):
    want = reference(logits.double(), factors.double())
    torch.testing.assert_close(found.total.double(), want.total, rtol=1e-6, atol=2e-6)
    torch.testing.assert_close(found.scaled_total.double(), want.scaled_total, rtol=1e-6, atol=2e-6)
    assert torch.equal(found.maxima.double(), want.maxima)


@pytest.mark.parametrize("width", [1, CHUNK - 1, *WIDTHS])
@pytest.mark.parametrize("size", [0.01, 10.0, 1e4])
def test_whatever_the_width(width, size):
    logits, factors = torch.randn(3, width) * size, torch.tensor([1.0, 1.25, 0.5])
    agrees(logit_stats(logits, factors), logits, factors)


@compiled
@pytest.mark.parametrize("width", WIDTHS)
def test_the_largest_may_stand_anywhere(width):
    """At the very beginning and end, and on both sides of where whole vectors and whole chunks end."""
    edges = {0, 1, width // 16 * 16 - 1, width // 16 * 16, width // CHUNK * CHUNK - 1, width - 16, width - 1}
    for place in sorted(edge for edge in edges if 0 <= edge < width):
        logits, factors = torch.zeros(1, width), torch.ones(1)
        logits[0, place] = 50
        assert native.serves(logits, factors)
        agrees(native.logit_stats(logits, factors), logits, factors)


@compiled
def test_rows_may_lie_apart_and_what_lies_between_is_not_read():
    padded = torch.randn(4, 500)
    padded[:, 333:] = 1e9
    logits, factors = padded[:, :333], torch.full((4,), 1.3)
    agrees(native.logit_stats(logits, factors), logits, factors)
    agrees(native.logit_stats(padded[:, :333].T.contiguous().T, factors), logits, factors)


@compiled
def test_what_is_ruled_out_adds_nothing():
    logits = torch.randn(2, 300)
    logits[0, 3:] = float("-inf")
    logits[1, :299] = float("-inf")
    agrees(native.logit_stats(logits, torch.ones(2)), logits, torch.ones(2))


@compiled
def test_a_row_alone_has_the_bits_of_the_row_in_a_batch():
    logits, factors = torch.randn(20, 1234), torch.rand(20) + 0.5
    whole = native.logit_stats(logits, factors)
    for row in range(20):
        alone = native.logit_stats(logits[row : row + 1], factors[row : row + 1])
        for name in ("total", "scaled_total", "maxima"):
            assert torch.equal(getattr(alone, name)[0], getattr(whole, name)[row])


def test_no_rows_at_all():
    found = logit_stats(torch.randn(0, 300), torch.ones(0))
    assert (len(found.total), len(found.scaled_total), found.maxima.shape) == (0, 0, (0, 2))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_other_types_are_torchs(dtype):
    logits = torch.randn(2, 300, dtype=dtype)
    assert logit_stats(logits, torch.ones(2, dtype=dtype)).total.dtype == dtype


@compiled
@pytest.mark.parametrize("width", WIDTHS[:-2])
def test_nothing_beside_the_rows_is_read_or_written(width, monkeypatch):
    logits, factors = guarded_input(torch.randn(3, width)), guarded_input(torch.rand(3) + 0.5)
    with guarded_output(monkeypatch):
        found = native.logit_stats(logits, factors)
        alone = native.logit_stats(logits[1:2], factors[1:2])
    agrees(found, logits, factors)
    assert torch.equal(alone.total[0], found.total[1])


@compiled
def test_what_the_loop_is_not_for_is_torchs():
    """Called directly, it looks for itself."""
    logits, factors = torch.randn(3, 300), torch.rand(3) + 0.5
    for other in (logits.double(), logits.bfloat16(), logits[:, :40], logits[:0]):
        own = factors[: len(other)].to(other.dtype)
        found, want = native.logit_stats(other, own), reference(other, own)
        assert torch.equal(found.total, want.total)
        assert found.total.dtype == other.dtype
    assert torch.equal(native.logit_stats(logits, factors.double()).total, native.logit_stats(logits, factors).total)
    apart = torch.stack([factors, factors], dim=1)[:, 0]
    assert torch.equal(native.logit_stats(logits, apart).scaled_total, native.logit_stats(logits, factors).scaled_total)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_factor_too_few_or_too_many_is_refused(count):
    with pytest.raises(ValueError, match="zip"):
        logit_stats(torch.randn(3, 300), torch.ones(count))
