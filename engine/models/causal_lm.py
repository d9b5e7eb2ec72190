"""What a causal language model of transformers has besides being a module: for annotations only.

transformers' own base class is not typed, and a Protocol cannot also be an ``nn.Module``, which these are handed on as.
No model derives from this class, and none is made of it.
"""

from collections.abc import Callable
from typing import Any

from torch import nn


class CausalLM(nn.Module):
    """See ``transformers.PreTrainedModel``; ``config`` is a ``PretrainedConfig``, whose fields differ by family."""

    config: Any
    generation_config: Any
    get_input_embeddings: Callable[[], nn.Embedding]
    get_output_embeddings: Callable[[], nn.Module | None]  # the layer that makes logits of what the last block gives
    set_attn_implementation: Callable[[str | None], None]
    _can_set_attn_implementation: Callable[[], bool]
    generate: Callable[..., Any]
