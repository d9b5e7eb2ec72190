"""A model that would give other text in a ragged batch is refused before it says anything."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.sampler import cache
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.self_check import UnsupportedModel, check_ragged, longest_context, refuse_by_name
from kernels.attention import native
from tests.engine.sampler.tiny import ARCHITECTURES, GLU, VOCABULARY, build


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_good_models_pass(architecture):
    module = build(architecture)
    refuse_by_name(module, architecture)
    check_ragged(RaggedModel(module, VOCABULARY), architecture, "float32")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
        ("falcon", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}),
        ("mpt", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128}),
    ],
)
def test_models_that_ignore_or_break_the_hooks_are_refused(name, options):
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, vocab_size=VOCABULARY, **options)
    module = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with pytest.raises(UnsupportedModel, match=name):
        check_ragged(RaggedModel(module, VOCABULARY), name, "float32")


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
def test_a_mask_that_is_off_by_one_is_caught(monkeypatch, compiled):
    if compiled:
        if why := native.why_not():
            pytest.skip(why)
        right = native.packed_attention

        def off_by_one(*line, **how):
            return right(*line[:-1], (line[-1] - 1).clamp(min=0), **how)  # a slot that is not there is refused anyway

        monkeypatch.setattr(native, "packed_attention", off_by_one)
    else:
        visible = cache.visibility
        monkeypatch.setattr(cache, "visibility", lambda positions, *rest: visible(positions - 1, *rest))
        monkeypatch.setattr(cache, "is_compiled", lambda *heads: False)
    with pytest.raises(UnsupportedModel, match="than alone"):
        check_ragged(RaggedModel(build(), VOCABULARY), "llama", "float32")


def test_recurrent_layers_are_refused_by_name():
    module = build()
    module.config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(UnsupportedModel, match="linear attention"):
        refuse_by_name(module, "hybrid")


def test_the_context_ends_where_rows_would_begin_to_change_each_other():
    plain, dynamic = build(), build()
    dynamic.config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    assert longest_context(plain, 10_000) == 10_000
    assert longest_context(dynamic, 10_000) == GLU["max_position_embeddings"]
