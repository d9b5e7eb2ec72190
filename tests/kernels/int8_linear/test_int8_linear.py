"""The int8 product against its float twin, and a row alone against the row in a batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from kernels.int8_linear import Int8Linear, available, int8_linear, pack, quantize_weight, replace_linears
from kernels.int8_linear.quantize import LEVELS, int8_linear_float

pytestmark = pytest.mark.skipif(not available(), reason="this torch has no FBGEMM")

SHAPES = [(896, 896), (128, 896), (896, 4864), (48, 64), (1, 1), (5, 3), (17, 33), (250, 129)]


def rows_of_many_sizes(count: int, width: int, seed: int = 0) -> torch.Tensor:
    """Rows whose magnitudes differ by up to 10^6, as activations with outliers do."""
    generator = torch.Generator().manual_seed(seed)
    sizes = 10.0 ** (6 * torch.rand(count, 1, generator=generator) - 3)
    return torch.randn(count, width, generator=generator) * sizes


def weight_and_bias(out: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(out * 10_007 + width)
    return torch.randn(out, width, generator=generator) * 0.02, torch.randn(out, generator=generator)


@pytest.mark.parametrize("shape", SHAPES)
def test_row_alone_has_the_bits_of_the_row_in_a_batch(shape):
    weight, bias = weight_and_bias(*shape)
    packed = pack(*quantize_weight(weight))
    x = rows_of_many_sizes(32, shape[1])
    alone = torch.cat([int8_linear(row[None], packed, bias) for row in x])
    for count in range(1, 33):
        assert torch.equal(int8_linear(x[:count], packed, bias), alone[:count])


def test_neighbours_do_not_reach_a_row():
    """Stock dynamic int8 fails this: a loud neighbour takes all the levels."""
    weight, bias = weight_and_bias(64, 96)
    packed = pack(*quantize_weight(weight))
    x = torch.randn(2, 96)
    loud = torch.stack([x[0], x[1] * 1e6])
    assert torch.equal(int8_linear(x, packed, bias)[0], int8_linear(loud, packed, bias)[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_the_float_twin(shape):
    weight, bias = weight_and_bias(*shape)
    quantized, scale = quantize_weight(weight)
    x = rows_of_many_sizes(9, shape[1])
    expected = int8_linear_float(x, quantized, scale, bias)
    # A level is 1/127 of the row's largest entry; values that fall on its edge may round either way.
    edge = x.abs().amax(1, keepdim=True) / 127 * scale * LEVELS
    difference = (int8_linear(x, pack(quantized, scale), bias) - expected).abs()
    assert (difference <= 2e-6 * expected.abs().amax(1, keepdim=True) + edge).all()
    assert difference.mean() <= 1e-5 * expected.abs().mean()


def test_close_to_the_float_layer():
    linear = nn.Linear(896, 256)
    x = rows_of_many_sizes(8, 896)
    with torch.inference_mode():
        exact = linear(x) - linear.bias
        error = Int8Linear.from_linear(linear)(x) - linear.bias - exact
    assert error.norm() / exact.norm() < 0.02


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 5), st.booleans())
def test_any_shape(out, width, count, with_bias):
    weight, bias = weight_and_bias(out, width)
    quantized, scale = quantize_weight(weight)
    x = rows_of_many_sizes(count, width)
    added = bias if with_bias else None
    result = int8_linear(x, pack(quantized, scale), added)
    assert result.shape == (count, out)
    for row, expected in zip(x, result, strict=True):
        assert torch.equal(int8_linear(row, pack(quantized, scale), added), expected)


def test_rows_and_channels_of_zeros():
    weight, bias = weight_and_bias(6, 10)
    weight[2] = 0
    packed = pack(*quantize_weight(weight))
    x = torch.randn(3, 10)
    x[1] = 0
    result = int8_linear(x, packed, bias)
    assert torch.equal(result[1], bias)
    assert torch.equal(result[:, 2], bias[2].expand(3))
    assert torch.isfinite(result).all()


def test_no_saturation_where_pairs_are_largest():
    """All inputs and weights at their limit: 16-bit pair sums (AVX2 without VNNI) must not clip."""
    weight = torch.ones(8, 512)
    weight[::2] = -1
    result = int8_linear(torch.ones(4, 512), pack(*quantize_weight(weight)))
    torch.testing.assert_close(result, weight.sum(1).expand(4, 8), rtol=1e-6, atol=0)


def test_weights_keep_to_seven_bits():
    quantized, scale = quantize_weight(torch.randn(20, 30).bfloat16())
    assert quantized.dtype == torch.int8
    assert scale.dtype == torch.float32
    assert quantized.abs().amax(1).eq(LEVELS).all()


def test_replace_linears_reaches_nested_layers_and_keeps_the_rest():
    model = nn.Sequential(
        nn.Embedding(11, 16), nn.Sequential(nn.Linear(16, 32), nn.GELU()), nn.Linear(32, 11, bias=False)
    )
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    with torch.inference_mode():
        before = model(tokens)
        after = replace_linears(model)(tokens)
    assert isinstance(model[1][0], Int8Linear)
    assert isinstance(model[2], Int8Linear)
    assert isinstance(model[0], nn.Embedding)
    assert after.shape == before.shape == (2, 3, 11)
    assert (after - before).norm() / before.norm() < 0.05
