"""How large a model is inside, read from its config or its GGUF header. No torch.

What a memory plan needs, and no more; names that differ between architectures are looked up under all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.models.errors import WrongFile
from engine.models.folders import check_weights_folder, read_json, tensor_sizes
from engine.models.gguf_file import read_header
from engine.models.model_shape import ModelShape


def shape_of_config(config: Mapping[str, Any], parameters: int, tied: bool) -> ModelShape | None:
    """From a config of transformers as a mapping; None when it lacks what every decoder has.

    ``tied``: what the weights say, should the config be silent.
    """
    config = config.get("text_config") or config

    def first(*names: str, default: int = 0) -> int:
        return next((int(config[name]) for name in names if isinstance(config.get(name), int)), default)

    hidden = first("hidden_size", "n_embd", "d_model")
    heads = first("num_attention_heads", "n_head", "n_heads")
    layers, vocabulary = first("num_hidden_layers", "n_layer", "n_layers"), first("vocab_size")
    if not (hidden and heads and layers and vocabulary):
        return None
    declared = config.get("tie_word_embeddings")
    return ModelShape(
        parameters=parameters,
        layers=layers,
        hidden=hidden,
        intermediate=first("intermediate_size", "ffn_dim", "n_inner", default=4 * hidden),
        heads=heads,
        kv_heads=first("num_key_value_heads", default=heads),
        head_dim=first("head_dim", default=hidden // heads),
        vocabulary=vocabulary,
        tied=tied if declared is None else bool(declared),
        context=first("max_position_embeddings", "n_positions", default=0),
    )


def shape_of_folder(folder: Path) -> ModelShape | None:
    """Of a folder with config and safetensors as published. Raises WrongFile for one that is not whole."""
    sizes = tensor_sizes(check_weights_folder(folder))
    has_head = any(name.endswith(("lm_head.weight", "embed_out.weight")) for name in sizes)
    try:
        config = read_json(folder / "config.json")
    except WrongFile:  # loading will say so; a list of models goes on without its shape
        return None
    return shape_of_config(config, sum(sizes.values()), tied=not has_head)


def shape_of_gguf(path: Path) -> ModelShape | None:
    """None when the header lacks what every decoder has. Raises the errors of ``gguf_file.read_header``."""
    header = read_header(path)
    sizes = header.sizes
    hidden, heads = sizes.get("embedding_length", 0), sizes.get("attention.head_count", 0)
    if not hidden or not heads:
        return None
    return ModelShape(
        parameters=header.parameters,
        layers=sizes.get("block_count", 0),
        hidden=hidden,
        intermediate=sizes.get("feed_forward_length", 4 * hidden),
        heads=heads,
        kv_heads=sizes.get("attention.head_count_kv", heads),
        head_dim=sizes.get("attention.key_length", hidden // heads),
        vocabulary=header.rows,
        tied=header.tied,
        context=sizes.get("context_length", 0),
    )
