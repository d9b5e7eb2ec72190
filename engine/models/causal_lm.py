"""What a causal language model of transformers has besides being a module: for annotations only.

transformers' own base class is not typed, and a Protocol cannot also be an ``nn.Module``, which these are handed on as.
No model derives from this class, and none is made of it.
"""

from typing import Any

from torch import Tensor, nn


class CausalLM(nn.Module):
    """See ``transformers.PreTrainedModel``; ``config`` is a ``PretrainedConfig``, whose fields differ by family."""

    config: Any
    generation_config: Any

    def get_input_embeddings(self) -> nn.Embedding:
        raise NotImplementedError

    def get_output_embeddings(self) -> nn.Module | None:
        """The layer that makes logits of what the last block gives."""
        raise NotImplementedError

    def set_attn_implementation(self, name: str | None) -> None:
        raise NotImplementedError

    def _can_set_attn_implementation(self) -> bool:
        raise NotImplementedError

    def generate(self, inputs: Tensor, **options: Any) -> Any:
        raise NotImplementedError
