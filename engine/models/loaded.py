"""A model that is ready to be sampled from: weights, tokenizer, and the facts a sampler needs about both."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from transformers import PreTrainedTokenizerFast

from engine.models.chat import PromptEncoder


@dataclass(frozen=True)
class LoadedModel:
    """An ordinary transformers causal language model in eval mode, attention left at ``eager``.

    ``context`` is in tokens. ``vocabulary`` is the number of real token ids: logits at or above it are padding and
    are never drawn. ``eos_ids`` is every id that ends a turn: of the tokenizer, the generation config and the chat
    template, because each of them can be missing from a file.
    """

    name: str
    module: torch.nn.Module
    tokenizer: PreTrainedTokenizerFast
    device: torch.device
    precision: str
    context: int
    vocabulary: int
    eos_ids: frozenset[int]

    def encode(self, prompt: str, mode: str = "chat", system: str = "") -> list[int]:
        """Token ids of a prompt. ``chat``: one user turn in the model's template; ``completion``: the text itself.

        ``system`` is what a chat model is told beforehand; empty for the template's own default.

        Control tokens in ``prompt`` are ordinary characters in both modes. A model without a chat template reads
        every prompt as a completion.
        """
        return self._encoder.chat(prompt, system) if mode == "chat" else self._encoder.completion(prompt)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, control tokens left out."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    @cached_property
    def _encoder(self) -> PromptEncoder:
        return PromptEncoder(self.tokenizer)
