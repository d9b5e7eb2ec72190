"""In float32 on a CPU, too, a row's logits do not depend on its company, to the bit; so no token does."""

import pytest
import torch

from engine.sampler.ragged_model import RaggedModel
from kernels.float_linear import native
from tests.engine.sampler.tiny import VOCABULARY, build

pytestmark = pytest.mark.skipif(not native.is_there(), reason="products are torch's here")
PROMPT = [3, 50, 7, 22, 90, 41, 8]
SHAPE = {"hidden_size": 72, "intermediate_size": 168, "num_attention_heads": 6, "num_key_value_heads": 2}


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
@pytest.mark.parametrize("name", ["llama", "qwen2", "starcoder2", "gpt_neox"])
def test_a_row_alone_and_among_eight(name, packed):
    # torch's GELU rounds otherwise at a tensor's end, if that is not where vectors end; in real models it is.
    shape = SHAPE if name in ("llama", "qwen2") else {"intermediate_size": 128}
    model = RaggedModel(build(name, spread=0.3, **shape), VOCABULARY, packed=packed)
    draw = torch.Generator().manual_seed(0)
    lines = [torch.randint(3, VOCABULARY, (count,), generator=draw).tolist() for count in (5, 1, 9, 3, 1, 17, 2, 4)]
    first = model.prefill(PROMPT).logits
    together = model.forward(lines, [len(PROMPT)] * 8).logits.split([len(line) for line in lines])
    for line, own in zip(lines, together, strict=True):
        model.clear()
        assert torch.equal(model.prefill(PROMPT).logits, first)
        assert torch.equal(model.forward([line], [len(PROMPT)]).logits, own)
        model.clear()
        model.prefill(PROMPT)
        one_by_one = [model.forward([[token]], [len(PROMPT) + at]).logits for at, token in enumerate(line)]
        assert torch.equal(torch.cat(one_by_one), own)


def test_a_prompt_in_one_piece_or_in_several(monkeypatch):
    model = RaggedModel(build("llama", spread=0.3, **SHAPE), VOCABULARY)
    whole = model.prefill(PROMPT * 5).logits
    monkeypatch.setattr("engine.sampler.ragged_model.PREFILL_CHUNK", 4)
    model.clear()
    assert torch.equal(model.prefill(PROMPT * 5).logits, whole)
