"""A model that would give other text in a ragged batch is refused before it says anything."""

from collections.abc import Callable

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.models.errors import UnsupportedModel
from engine.sampler import cache
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.self_check import check_ragged, longest_context, refuse_by_name
from kernels.attention import native
from kernels.attention.torch import visibility
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


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_said_to_be_damaged(broken):
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "llama", vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4
    )
    module = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        module.model.layers[1].mlp.down_proj.weight[3] = broken
    with pytest.raises(UnsupportedModel, match=r"model-x computes no numbers .* weights are damaged"):
        check_ragged(RaggedModel(module, VOCABULARY), "model-x", "float32")


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
def test_a_mask_that_is_off_by_one_is_caught(monkeypatch, compiled):
    if compiled:
        if why := native.why_not():
            pytest.skip(why)
        right: Callable[..., torch.Tensor] = native.packed_attention

        def off_by_one(*line, **how):
            *before, positions = line
            return right(*before, (positions - 1).clamp(min=0), **how)  # a slot that is not there is refused anyway

        monkeypatch.setattr(native, "packed_attention", off_by_one)
    else:
        visible = visibility
        monkeypatch.setattr(cache, "visibility", lambda positions, *rest: visible(positions - 1, *rest))
        monkeypatch.setattr(cache, "is_compiled", lambda *heads: False)
    with pytest.raises(UnsupportedModel, match="than alone"):
        check_ragged(RaggedModel(build(), VOCABULARY), "llama", "float32")


WIDE = {"sliding_window": 64}
MIXTURE = GLU | WIDE | {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
HIDDEN_WINDOWS = {
    "phimoe": MIXTURE,
    "qwen2_moe": MIXTURE
    | {
        "use_sliding_window": True,
        "max_window_layers": 2,
        "shared_expert_intermediate_size": 16,
        "num_hidden_layers": 2,
    },
}
SHOWN_WINDOWS = {
    "mistral": GLU | WIDE,
    "starcoder2": GLU | WIDE,
    "qwen2": GLU | WIDE | {"use_sliding_window": True, "max_window_layers": 0},
    "gemma2": GLU | WIDE | {"head_dim": 8, "query_pre_attn_scalar": 8},
    "gpt_oss": MIXTURE | {"head_dim": 8},
    "mixtral": MIXTURE,
}


def windowed(name, options):
    special = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **(options | special))
    module = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return module


def windows_of(module):
    owners = [module.config, *module.modules()]
    return [owner.sliding_window for owner in owners if isinstance(getattr(owner, "sliding_window", None), int)]


@pytest.mark.parametrize("name", HIDDEN_WINDOWS)
def test_a_window_that_only_stock_attention_sees_is_refused(name):
    """Far wider than the check's prompt: before its end nothing is wrong."""
    module = windowed(name, HIDDEN_WINDOWS[name])
    with pytest.raises(UnsupportedModel, match=rf"{name} gives other results .* behind its sliding window"):
        check_ragged(RaggedModel(module, VOCABULARY), name, "float32")


@pytest.mark.parametrize("name", SHOWN_WINDOWS)
def test_a_window_that_attention_is_told_of_passes_and_stays_as_wide_as_it_was(name):
    module = windowed(name, SHOWN_WINDOWS[name])
    before = windows_of(module)
    check_ragged(model := RaggedModel(module, VOCABULARY), name, "float32")
    assert windows_of(module) == before
    assert 64 in before
    tokens = torch.randint(3, VOCABULARY, (80,), generator=torch.Generator().manual_seed(2)).tolist()
    got = model.prefill(tokens).logits[0]
    with model.stock_attention():
        want = module(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
    torch.testing.assert_close(got, want, rtol=0, atol=1e-4)


def test_the_window_is_wide_again_after_a_refusal():
    module = windowed("phimoe", HIDDEN_WINDOWS["phimoe"])
    with pytest.raises(UnsupportedModel):
        check_ragged(RaggedModel(module, VOCABULARY), "phimoe", "float32")
    assert set(windows_of(module)) == {64}


def test_a_window_that_no_text_outgrows_is_not_asked_about():
    module = windowed("phimoe", HIDDEN_WINDOWS["phimoe"] | {"sliding_window": GLU["max_position_embeddings"]})
    check_ragged(RaggedModel(module, VOCABULARY), "phimoe", "float32")


@pytest.mark.parametrize("kind", ["full_attention", "sliding_attention"])
def test_the_context_ends_there_too_where_kinds_of_layers_differ_in_rope(kind):
    module = build()
    plain = {"rope_type": "default", "rope_theta": 1e4}
    nested = {"full_attention": plain, "sliding_attention": plain}
    module.config.rope_parameters = nested | {kind: plain | {"rope_type": "dynamic", "factor": 2.0}}
    assert longest_context(module, 10_000) == GLU["max_position_embeddings"]
    module.config.rope_parameters = nested
    assert longest_context(module, 10_000) == 10_000


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
