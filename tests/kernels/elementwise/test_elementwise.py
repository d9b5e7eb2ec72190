"""Compiled norms and activations against torch's, and what is replaced and what is not."""

import pytest
import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm

from kernels import llvm
from kernels.elementwise import compile_elementwise, rms_norm, silu
from kernels.elementwise.modules import Norm, Silu

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


def test_what_computes_the_same_is_replaced():
    norm = Qwen2RMSNorm(64, 1e-5)
    nn.init.normal_(norm.weight)
    model = nn.Sequential(norm, nn.Sequential(nn.Linear(64, 64), nn.SiLU()), ACT2FN["silu"], nn.GELU())
    x = torch.randn(3, 64)
    with torch.inference_mode():
        before, after = model(x), compile_elementwise(model)(x)
    assert [type(model[0]), type(model[1][1]), type(model[2])] == [Norm, Silu, Silu]
    assert isinstance(model[3], nn.GELU)
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)


def test_what_computes_something_else_stays():
    shifted = GemmaRMSNorm(64)  # multiplies with 1 + weight
    nn.init.normal_(shifted.weight)
    model = nn.Sequential(shifted, Qwen2RMSNorm(20), Qwen2RMSNorm(64).double())
    compile_elementwise(model)
    assert not any(isinstance(module, Norm) for module in model)
