"""int8 and int4 weights as a GPU has them. torchao's int8 also runs on a CPU, so that much is tested everywhere."""

import copy
import sys

import pytest
import torch

from engine.models.errors import PrecisionNotAvailable
from engine.models.weight_only import GROUP, quantize_weights
from tests.engine.sampler.tiny import GLU, build

CPU = torch.device("cpu")
WIDE = GLU | {"hidden_size": GROUP, "intermediate_size": 2 * GROUP}


@pytest.fixture
def torchao():
    return pytest.importorskip("torchao.quantization", reason="torchao is not installed", exc_type=ImportError)


@pytest.fixture
def model():
    return build(dtype=torch.bfloat16, spread=0.1, **WIDE)


def logits(model):
    with torch.inference_mode():
        return model(torch.arange(3, 40)[None]).logits[0].float()


@pytest.mark.parametrize("tied", [False, True])
def test_int8_is_near_and_only_linear_layers_are_small(torchao, tied):
    model = build(dtype=torch.bfloat16, spread=0.1, tie_word_embeddings=tied, **WIDE)
    stock = copy.deepcopy(model)
    small = quantize_weights(model, "int8", CPU)
    assert (logits(small) - logits(stock)).norm() / logits(stock).norm() < 0.05
    assert type(small.model.layers[0].mlp.up_proj.weight) is not torch.nn.Parameter
    assert small.model.embed_tokens.weight.dtype == torch.bfloat16
    assert (small.lm_head.weight is small.model.embed_tokens.weight) is tied


def test_without_torchao_a_sentence(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(PrecisionNotAvailable, match=r"int4 on a GPU needs the package torchao: `pip install torchao`"):
        quantize_weights(model, "int4", CPU)


def test_int4_needs_whole_groups(torchao):
    with pytest.raises(
        PrecisionNotAvailable, match=rf"multiple of {GROUP}, and model\.layers\.0\.\S+ has 32; choose int8"
    ):
        quantize_weights(build(dtype=torch.bfloat16), "int4", CPU)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="int4 is for GPUs")
def test_int4_on_a_gpu(torchao, model):
    stock = copy.deepcopy(model).cuda()
    small = quantize_weights(model, "int4", torch.device("cuda"))
    ids = torch.arange(3, 40, device="cuda")[None]
    with torch.inference_mode():
        want, got = stock(ids).logits.float(), small(ids).logits.float()
    assert (got - want).norm() / want.norm() < 0.3
