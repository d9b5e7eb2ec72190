"""Compiled norms and activations against torch's, and what is replaced and what is not."""

import pytest
import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm

from kernels import llvm
from kernels.elementwise import compile_elementwise, rms_norm, silu
from kernels.elementwise import torch as plain
from kernels.elementwise.modules import Norm, Silu
from tests.kernels.guards import guarded_input, guarded_output

pytestmark = pytest.mark.skipif(bool(llvm.why_not()), reason=llvm.why_not() or "compiled")


@pytest.mark.parametrize("shape", [(1, 1, 16), (1, 8, 896), (3, 64), (2, 5, 48), (300, 896), (0, 32)])
def test_rms_norm(shape):
    x, weight = torch.randn(shape) * 5, torch.randn(shape[-1])
    want = x.double() * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6) * weight.double()
    torch.testing.assert_close(rms_norm(x, weight, 1e-6).double(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 16), (1, 8, 4864), (7, 48), (9, 4864)])
def test_silu(shape):
    x = torch.randn(shape) * 10
    torch.testing.assert_close(silu(x).double(), torch.nn.functional.silu(x.double()), rtol=1e-6, atol=1e-7)


def test_silu_at_the_ends():
    x = torch.tensor([-1e30, -200.0, -90.0, -87.5, -1e-30, 0.0, 1e-30, 87.5, 90.0, 200.0, 1e30, 1.0] + [0.5] * 4)
    torch.testing.assert_close(silu(x), torch.nn.functional.silu(x), rtol=1e-6, atol=1e-8)
    assert silu(torch.full((16,), float("nan"))).isnan().all()


def test_silu_of_the_half_of_a_row():
    both = torch.randn(5, 128)
    for half in (both[:, :64], both[:, 64:], both[None, :, 64:]):
        assert torch.equal(silu(half), silu(half.contiguous()))


def test_a_row_alone_has_the_bits_of_the_row_in_a_batch():
    x, weight = torch.randn(40, 896), torch.randn(896)
    for row in range(40):
        assert torch.equal(rms_norm(x, weight, 1e-6)[row], rms_norm(x[row : row + 1], weight, 1e-6)[0])
        assert torch.equal(silu(x)[row], silu(x[row]))


ODD = [1, 2, 7, 15, 17, 31, 33, 100, 887, 4863]


def norm_of(x, weight):
    return x.double() * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6) * weight.double()


@pytest.mark.parametrize("width", ODD)
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_any_width_and_nothing_beside_the_rows_is_read_or_written(width, rows, monkeypatch):
    x, weight = guarded_input(torch.randn(rows, width)), guarded_input(torch.randn(width))
    with guarded_output(monkeypatch):
        activated, normed = silu(x), rms_norm(x, weight, 1e-6)
    torch.testing.assert_close(activated.double(), nn.functional.silu(x.double()), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(normed.double(), norm_of(x, weight), rtol=1e-6, atol=1e-6)
    for row in range(rows):
        assert torch.equal(silu(x[row]), activated[row])
        assert torch.equal(rms_norm(x[row], weight, 1e-6), normed[row])


@pytest.mark.parametrize("width", [16, 20])
def test_rows_and_columns_that_lie_apart(width, monkeypatch):
    whole, weight = torch.randn(6, 3 * width), torch.randn(3 * width)
    parts = [
        (whole[::2, width : 2 * width], weight[:width]),
        (whole[:, ::3], weight[::3]),
        (whole[:, :6].T[:, :3], weight[:3]),
        (whole[:1].expand(4, -1), weight),
        (whole[:, :1], weight[:1]),
    ]
    for x, own in parts:
        with guarded_output(monkeypatch):
            activated, normed = silu(x), rms_norm(x, own, 1e-6)
        assert torch.equal(activated, silu(x.clone(memory_format=torch.contiguous_format)))
        torch.testing.assert_close(normed.double(), norm_of(x, own), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_another_type_is_torchs(dtype):
    x, weight = torch.randn(3, 33).to(dtype), torch.randn(33).to(dtype)
    assert torch.equal(silu(x), nn.functional.silu(x))
    assert torch.equal(rms_norm(x, weight, 1e-6), plain.rms_norm(x, weight, 1e-6))
    assert rms_norm(x, weight, 1e-6).dtype == dtype
    mixed = rms_norm(x.float(), weight, 1e-6)  # a weight of another type than the rows
    torch.testing.assert_close(mixed.double(), norm_of(x, weight), rtol=2e-2, atol=2e-2)


def test_a_weight_of_another_width_is_refused():
    for width in (8, 20, 32):
        with pytest.raises(RuntimeError):
            rms_norm(torch.randn(2, 16), torch.randn(width), 1e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 16), (3, 0), (2, 0, 5), (0, 0)])
def test_nothing_of_nothing(shape):
    x = torch.randn(shape)
    assert silu(x).shape == shape
    assert rms_norm(x, torch.randn(shape[-1]), 1e-6).shape == shape


def test_a_single_number():
    assert silu(torch.tensor(1.5)) == nn.functional.silu(torch.tensor(1.5))


def test_the_norm_in_torch_is_that_of_transformers():
    """What falls back there computes what stood there before."""
    norm = Qwen2RMSNorm(33, 1e-6)
    nn.init.normal_(norm.weight)
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(4, 33).to(dtype)
        assert torch.equal(plain.rms_norm(x, norm.weight.to(dtype), 1e-6), norm.to(dtype)(x))


@pytest.mark.parametrize("width", [64, 20])
def test_what_computes_the_same_is_replaced(width):
    norm = Qwen2RMSNorm(width, 1e-5)
    nn.init.normal_(norm.weight)
    model = nn.Sequential(norm, nn.Sequential(nn.Linear(width, width), nn.SiLU()), ACT2FN["silu"], nn.GELU())
    x = torch.randn(3, width)
    with torch.inference_mode():
        before, after = model(x), compile_elementwise(model)(x)
    assert [type(model[0]), type(model[1][1]), type(model[2])] == [Norm, Silu, Silu]
    assert isinstance(model[3], nn.GELU)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)


def test_what_computes_something_else_stays():
    shifted = GemmaRMSNorm(64)  # multiplies with 1 + weight
    nn.init.normal_(shifted.weight)
    model = nn.Sequential(shifted, Qwen2RMSNorm(64).double())
    compile_elementwise(model)
    assert not any(isinstance(module, Norm) for module in model)
