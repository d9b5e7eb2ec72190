"""Random models of two or three layers, small enough to know everything about."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

VOCABULARY = 97
GLU = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
WINDOW = {"sliding_window": 6}
ARCHITECTURES = {
    "llama": GLU,
    "qwen2": GLU,
    "starcoder2": GLU | WINDOW,
    "gemma2": GLU | WINDOW | {"head_dim": 8, "query_pre_attn_scalar": 8},
    "opt": {
        "hidden_size": 32,
        "ffn_dim": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "word_embed_proj_dim": 32,
        "max_position_embeddings": 512,
    },
    "gpt_neox": {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gpt_oss": GLU | WINDOW | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
}


def build(name="llama", seed=0, dtype=torch.float32, spread=0.25, **extra):
    """A model with weights large enough that errors show."""
    special = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(name, **(ARCHITECTURES[name] | special | extra))
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().to(dtype)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=spread)
    return model


def noisy_copy(model, noise, seed=1):
    """A draft that agrees with its target often, but not always."""
    copy = type(model)(model.config).eval().to(model.dtype)
    copy.load_state_dict(model.state_dict())
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    return copy
