"""The survey of logits: compiled against torch in float64, at all widths, and each row by itself."""

import pytest
import torch

from kernels import llvm
from kernels.survey import CHUNK, native, survey
from kernels.survey.torch import survey as reference

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
    agrees(survey(logits, factors), logits, factors)


@compiled
@pytest.mark.parametrize("width", WIDTHS)
def test_the_largest_may_stand_anywhere(width):
    """At the very beginning and end, and on both sides of where whole vectors and whole chunks end."""
    edges = {0, 1, width // 16 * 16 - 1, width // 16 * 16, width // CHUNK * CHUNK - 1, width - 16, width - 1}
    for place in sorted(edge for edge in edges if 0 <= edge < width):
        logits, factors = torch.zeros(1, width), torch.ones(1)
        logits[0, place] = 50
        assert native.serves(logits)
        agrees(native.survey(logits, factors), logits, factors)


@compiled
def test_rows_may_lie_apart_and_what_lies_between_is_not_read():
    padded = torch.randn(4, 500)
    padded[:, 333:] = 1e9
    logits, factors = padded[:, :333], torch.full((4,), 1.3)
    agrees(native.survey(logits, factors), logits, factors)
    agrees(native.survey(padded[:, :333].T.contiguous().T, factors), logits, factors)


@compiled
def test_what_is_ruled_out_adds_nothing():
    logits = torch.randn(2, 300)
    logits[0, 3:] = float("-inf")
    logits[1, :299] = float("-inf")
    agrees(native.survey(logits, torch.ones(2)), logits, torch.ones(2))


@compiled
def test_a_row_alone_has_the_bits_of_the_row_in_a_batch():
    logits, factors = torch.randn(20, 1234), torch.rand(20) + 0.5
    whole = native.survey(logits, factors)
    for row in range(20):
        alone = native.survey(logits[row : row + 1], factors[row : row + 1])
        for name in ("total", "scaled_total", "maxima"):
            assert torch.equal(getattr(alone, name)[0], getattr(whole, name)[row])


def test_no_rows_at_all():
    found = survey(torch.randn(0, 300), torch.ones(0))
    assert (len(found.total), len(found.scaled_total), found.maxima.shape) == (0, 0, (0, 2))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_other_types_are_torchs(dtype):
    logits = torch.randn(2, 300, dtype=dtype)
    assert survey(logits, torch.ones(2, dtype=dtype)).total.dtype == dtype
