"""The float32 product: right in any shape, and each row by itself, to the bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from kernels.float_linear import RowLinear, float_linear, make_rows_independent, native
from tests.kernels.guards import guarded_input, guarded_output

compiled = pytest.mark.skipif(not native.is_there(), reason="nothing is compiled here")


def agrees(found, x, weight, bias=None):
    want = functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    torch.testing.assert_close(found.double(), want, rtol=1e-5, atol=2e-5 * max(1, x.shape[-1]) ** 0.5)


@pytest.mark.parametrize(("out", "width"), [(1152, 896), (70, 33), (16, 16), (1, 1), (17, 100), (3, 15), (65, 2)])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 13, 40])
def test_any_shape(out, width, rows):
    x, weight, bias = torch.randn(rows, width), torch.randn(out, width), torch.randn(out)
    agrees(float_linear(x, weight), x, weight)
    agrees(float_linear(x, weight, bias), x, weight, bias)


@compiled
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.integers(1, 90), st.integers(1, 30), st.booleans())
def test_a_row_alone_has_the_bits_of_the_row_in_a_batch(out, width, rows, with_bias):
    x, weight, bias = torch.randn(rows, width), torch.randn(out, width), torch.randn(out) if with_bias else None
    together = float_linear(x, weight, bias)
    for row in range(rows):
        assert torch.equal(float_linear(x[row : row + 1], weight, bias)[0], together[row])
    assert torch.equal(float_linear(x[None], weight, bias)[0], together)


@compiled
def test_an_output_alone_has_the_bits_of_the_output_among_others():
    x, weight = torch.randn(7, 50), torch.randn(75, 50)
    together = float_linear(x, weight)
    for output in range(75):
        assert torch.equal(float_linear(x, weight[output : output + 1])[:, 0], together[:, output])


@compiled
@pytest.mark.parametrize(("out", "width", "rows"), [(70, 33, 1), (3, 15, 7), (1, 1, 1), (130, 20, 13)])
def test_nothing_beside_the_tensors_is_read_or_written(out, width, rows, monkeypatch):
    x, weight, bias = (guarded_input(torch.randn(shape)) for shape in ((rows, width), (out, width), (out,)))
    native._no_bias(out)
    with guarded_output(monkeypatch):
        found, without = float_linear(x, weight, bias), float_linear(x, weight)
    agrees(found, x, weight, bias)
    agrees(without, x, weight)


@compiled
def test_rows_and_columns_that_lie_apart():
    x, weight, bias = torch.randn(6, 60), torch.randn(20, 60), torch.randn(20, 2)
    for left, right, add in (
        (x[::2, :20], weight[:, 20:40], bias[:, 0]),
        (x[:, ::3], weight[:, ::3], None),
        (x[:1, :20].expand(4, -1), weight[::2, :20], bias[::2, 1]),
    ):
        want = float_linear(left.contiguous(), right.contiguous(), None if add is None else add.contiguous())
        assert torch.equal(float_linear(left, right, add), want)


def test_what_the_loop_is_not_for_is_torchs():
    x, weight = torch.randn(3, 20), torch.randn(5, 20)
    for dtype in (torch.float64, torch.bfloat16):
        found = float_linear(x.to(dtype), weight.to(dtype))
        assert torch.equal(found, functional.linear(x.to(dtype), weight.to(dtype)))
    for wrong in (torch.randn(3, 19), torch.randn(3, 21), x.double()):
        with pytest.raises(RuntimeError):
            float_linear(wrong, weight)
    with pytest.raises(RuntimeError):
        float_linear(x, weight, torch.randn(4))
    assert float_linear(torch.randn(20), weight).shape == (5,)
    for shape in ((0, 20), (2, 0, 20)):
        assert float_linear(torch.randn(shape), weight).shape == (*shape[:-1], 5)
    assert torch.equal(float_linear(torch.randn(2, 0), torch.randn(5, 0), torch.ones(5)), torch.ones(2, 5))
    weight.requires_grad_()
    assert float_linear(x, weight).requires_grad  # who trains gets torch's


@compiled
def test_layers_keep_their_weights_and_what_they_share():
    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 11, bias=False), nn.Linear(8, 8).double())
    model[2].weight = model[0].weight
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert make_rows_independent(model) is model
    assert [type(layer) for layer in model] == [nn.Embedding, RowLinear, RowLinear, nn.Linear]
    assert model[2].weight is model[0].weight
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    x = torch.randn(3, 8)
    with torch.inference_mode():
        agrees(model[1](x), x, model[1].weight, model[1].bias)
