"""Which unmodified models of transformers run in a ragged batch, and which are refused: the table of docs/models.md.

Tiny random models, float32, against their own stock eager attention, row by row.
"""

import copy
import re
from pathlib import Path

import pytest
import torch
import transformers
from packaging.version import Version
from transformers import AutoConfig, AutoModelForCausalLM

from engine.models.errors import UnsupportedModel
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.self_check import check_ragged, longest_context, refuse_by_name
from tests.engine.sampler.tiny import ARCHITECTURES, GLU, VOCABULARY, WINDOW

EXPERTS = GLU | {"num_local_experts": 4, "num_experts_per_tok": 2}
LATENT = GLU | {  # keys and values are cached as one latent per token
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
}
RUN = {name: ARCHITECTURES[name] for name in ("llama", "qwen2", "starcoder2", "gemma2", "opt", "gpt_neox")} | {
    "qwen3": GLU | {"head_dim": 8},
    "gemma3_text": GLU
    | WINDOW
    | {"head_dim": 8, "query_pre_attn_scalar": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "phi3": GLU | WINDOW | {"pad_token_id": 0},
    "granite": GLU | {"attention_multiplier": 0.3, "logits_scaling": 2.0, "residual_multiplier": 0.7},
    "mixtral": EXPERTS,
    "deepseek_v2": LATENT,
}
REFUSED = {
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128},
}
# Before that release its attention could not be exchanged.
(RUN if Version(transformers.__version__) >= Version("5.24") else REFUSED)["codegen"] = {
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 512,
    "n_ctx": 512,
    "rotary_dim": 4,
}
FORMS = {"padded": (False, False), "shared": (False, True), "packed": (True, True)}


def build(name, options):
    special = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(name, **(options | special))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)  # so large that errors show
    return model


@torch.inference_mode()
def alone(stock, tokens):
    return stock(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUN)
def test_uneven_rows_equal_the_stock_model(name, form):
    """Three steps with rejected tokens between them; ``padded`` without, the others with a prompt that rows share."""
    stock = build(name, RUN[name])
    packed, shared = FORMS[form]
    model = RaggedModel(copy.deepcopy(stock), VOCABULARY, packed=packed)
    generator = torch.Generator().manual_seed(1)

    def tokens(count):
        return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()

    prompt = tokens(9)
    if shared:
        torch.testing.assert_close(model.prefill(prompt).logits[0], alone(stock, prompt)[-1], rtol=0, atol=1e-4)
    texts = [list(prompt) if shared else [] for _ in range(4)]
    for counts in ([9, 4, 11, 2], [1, 1, 1, 1], [3, 6, 1, 5]):
        fresh = [tokens(count) for count in counts]
        logits = model.forward(fresh, [len(text) for text in texts]).logits
        for text, new, got in zip(texts, fresh, logits.split(counts), strict=True):
            want = alone(stock, text + new)[len(text) :]
            torch.testing.assert_close(got, want, rtol=0, atol=1e-4)
            text += new[: max(1, len(new) - 2)]


@pytest.mark.parametrize("name", RUN)
def test_what_runs_passes_the_check_at_load(name):
    module = build(name, RUN[name])
    refuse_by_name(module, name)
    check_ragged(RaggedModel(module, VOCABULARY), name, "float32")


@pytest.mark.parametrize("name", REFUSED)
def test_what_ignores_or_breaks_the_hooks_is_refused_by_name(name):
    module = build(name, REFUSED[name])
    with pytest.raises(
        UnsupportedModel, match=f"mine is a {name} model, whose attention this release .* cannot exchange; choose"
    ):
        refuse_by_name(module, "mine")


@pytest.mark.parametrize("kind", ["linear_attention", "mamba", "conv", "recurrent"])
def test_layers_with_a_state_of_their_own_are_refused_by_name(kind):
    module = build("llama", GLU)
    module.config.layer_types = ["full_attention", kind]
    with pytest.raises(
        UnsupportedModel, match=f"hybrid has {kind.replace('_', ' ')} layers.*choose a model with plain"
    ):
        refuse_by_name(module, "hybrid")


def test_a_recurrent_model_as_transformers_ships_it_is_refused():
    options = {
        "hidden_size": 32,
        "state_size": 8,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "expand": 2,
        "conv_kernel": 4,
        "time_step_rank": 4,
    }
    module = build("mamba", options)
    with pytest.raises(UnsupportedModel, match=r"mine has (linear attention|recurrent) layers"):
        refuse_by_name(module, "mine")


@pytest.mark.parametrize("kind", ["longrope", "dynamic"])
def test_rope_that_depends_on_the_longest_row_ends_the_context_before_it_switches(kind):
    """One row's length would change another's frequencies; shorter than the switch nothing depends on it."""
    module = build("llama", GLU)
    module.config.rope_parameters = {"rope_type": kind, "rope_theta": 1e4, "original_max_position_embeddings": 128}
    assert longest_context(module, 10_000) == 128


def test_the_table_in_the_documentation_is_this_one():
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    section = text[text.index("## Architectures") :]
    named = {cell for row in re.findall(r"^\| (.+?) \|", section, re.MULTILINE) for cell in re.findall(r"`(\w+)`", row)}
    assert named == RUN.keys() | REFUSED.keys()
