"""Every way that this processor knows gives FBGEMM's bits; what it does not know is skipped with its name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.int8_linear import available, native, pack, quantize_weight
from kernels.int8_linear.fbgemm import FbgemmWeight
from kernels.int8_linear.loops import WAYS, DotVariant
from tests.kernels.guards import guarded_input, guarded_output
from tests.kernels.int8_linear.test_int8_linear import rows_of_many_sizes, weight_and_bias

pytestmark = pytest.mark.skipif(not available(), reason="this torch has no FBGEMM to compare with")


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request) -> DotVariant:
    if request.param not in native.variants():
        pytest.skip(f"this processor or this torch cannot do {request.param.name}")
    return request.param


def agree(way: DotVariant, out: int, width: int, rows: torch.Tensor, bias: torch.Tensor | None) -> None:
    quantized, scale = quantize_weight(weight_and_bias(out, width)[0])
    expected = FbgemmWeight(quantized, scale).product(rows, bias)
    assert torch.equal(native.NativeWeight(quantized, scale, way).product(rows, bias), expected)


@pytest.mark.parametrize(("out", "width"), [(1152, 896), (896, 4864), (70, 33), (16, 16), (1, 1), (17, 100)])
def test_the_bits_of_fbgemm(way, out, width):
    bias = weight_and_bias(out, width)[1]
    for count in (1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33):
        agree(way, out, width, rows_of_many_sizes(count, width, seed=count), bias if count % 2 else None)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(1, 90), st.integers(0, 40), st.integers(0, 999), st.booleans())
def test_the_bits_of_fbgemm_in_any_shape(out, width, count, seed, with_bias):
    bias = weight_and_bias(out, width)[1] if with_bias else None
    for way in native.variants():
        agree(way, out, width, rows_of_many_sizes(count, width, seed), bias)


def test_inputs_that_fall_between_two_levels(way):
    """Halves of a level round as FBGEMM rounds them."""
    levels = torch.arange(-127, 128) / 127
    halves = torch.arange(-126.5, 127) / 127
    rows = torch.cat([levels, halves, levels.nextafter(torch.tensor(2.0)).clamp(max=1)])[None].repeat(3, 1)
    agree(way, 24, rows.shape[1], rows * torch.tensor([[1.0], [3.0], [0.1]]), None)


def test_unpacked_to_the_bit(way):
    quantized, scale = quantize_weight(weight_and_bias(37, 50)[0])
    again, scale_again = native.NativeWeight(quantized, scale, way).unpack()
    assert torch.equal(again, quantized)
    assert torch.equal(scale_again, scale)


def test_rows_that_lie_apart_in_memory(way):
    quantized, scale = quantize_weight(weight_and_bias(40, 64)[0])
    weight, wide = native.NativeWeight(quantized, scale, way), torch.randn(6, 128)
    assert torch.equal(weight.product(wide[::2, :64], None), weight.product(wide[::2, :64].contiguous(), None))


def test_a_row_that_is_not_a_number_does_not_pass_for_one(way):
    quantized, scale = quantize_weight(weight_and_bias(40, 64)[0])
    rows = torch.randn(3, 64)
    rows[1, 17] = float("nan")
    result = native.NativeWeight(quantized, scale, way).product(rows, None)
    assert result[1].isnan().all()
    assert not result[[0, 2]].isnan().any()


def test_another_type_is_refused(way):
    quantized, scale = quantize_weight(weight_and_bias(40, 64)[0])
    with pytest.raises(TypeError, match="float32 on the CPU"):
        native.NativeWeight(quantized, scale, way).product(torch.randn(2, 64).double(), None)


@pytest.mark.parametrize(("out", "width"), [(70, 33), (1, 1), (17, 100), (16, 16), (3, 15)])
@pytest.mark.parametrize("count", [1, 3, 17])
def test_nothing_beside_the_rows_is_read_or_written(way, out, width, count, monkeypatch):
    quantized, scale = quantize_weight(weight_and_bias(out, width)[0])
    weight, bias = native.NativeWeight(quantized, scale, way), guarded_input(torch.randn(out))
    rows = guarded_input(torch.randn(count, width))
    with guarded_output(monkeypatch):
        found = weight.product(rows, bias)
    assert torch.equal(found, FbgemmWeight(quantized, scale).product(rows, bias))


@pytest.mark.parametrize("out", [16, 70])
def test_another_width_is_refused(way, out):
    """It would be read past the ends of the rows, or of the bias."""
    weight = native.NativeWeight(*quantize_weight(weight_and_bias(out, 64)[0]), way)
    for rows in (torch.randn(2, 48), torch.randn(2, 80), torch.randn(64), torch.randn(2, 2, 64)):
        with pytest.raises(ValueError, match="rows of 64"):
            weight.product(rows, None)
    for bias in (torch.randn(out - 1), torch.randn(out + 1), torch.randn(1, out)):
        with pytest.raises(ValueError, match=f"bias of {out}"):
            weight.product(torch.randn(2, 64), bias)


@pytest.mark.parametrize("out", [16, 70])
def test_a_bias_of_another_type_or_with_gaps(way, out):
    weight, rows, bias = (
        native.NativeWeight(*quantize_weight(weight_and_bias(out, 64)[0]), way),
        torch.randn(2, 64),
        torch.randn(out),
    )
    want = weight.product(rows, bias)
    assert torch.equal(weight.product(rows, bias.double()), want)
    assert torch.equal(weight.product(rows, torch.stack([bias, -bias], dim=1)[:, 0]), want)


def test_no_rows(way):
    weight = native.NativeWeight(*quantize_weight(weight_and_bias(40, 64)[0]), way)
    assert weight.product(torch.randn(0, 64), None).shape == (0, 40)


def test_without_a_way_fbgemm_does_it(monkeypatch):
    monkeypatch.setattr(native, "variants", list)
    assert isinstance(pack(*quantize_weight(torch.randn(4, 8))), FbgemmWeight)
