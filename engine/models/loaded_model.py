"""A model that is ready to be sampled from: weights, tokenizer, and the facts a sampler needs about both."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from transformers import PreTrainedTokenizerFast

from engine.contract import BadRequest, Request
from engine.models.causal_lm import CausalLM
from engine.models.chat import PromptEncoder
from engine.selection.thoughts import is_mark


@dataclass(frozen=True)
class LoadedModel:
    """An ordinary transformers causal language model in eval mode, attention left at ``eager``.

    ``context`` is in tokens. ``vocabulary`` is the number of real token ids: logits at or above it are padding and
    are never drawn. ``eos_ids`` is every id that ends a turn: of the tokenizer, the generation config and the chat
    template, because each of them can be missing from a file.
    """

    name: str
    module: CausalLM
    tokenizer: PreTrainedTokenizerFast
    device: torch.device
    precision: str
    context: int
    vocabulary: int
    eos_ids: frozenset[int]

    def encode(self, request: Request) -> list[int]:
        """Token ids that the answers to ``request`` go on from: its turns and prompt as its mode lays them out.

        Control tokens in what a user wrote are ordinary characters. Raises BadRequest when the model knows no such
        mode, or where its tokenizer has tokens that its weights know nothing of.
        """
        ids = self._encoder.ids(request)
        rows = self.module.get_input_embeddings().num_embeddings
        if (strange := max(ids, default=0)) >= rows:
            token = self.tokenizer.convert_ids_to_tokens(strange)
            raise BadRequest(
                f"The tokenizer of {self.name} does not fit its weights: token {token!r} has the number {strange}, and "
                f"the weights end at {rows - 1}; choose another mode, or another version of the model."
            )
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``, control tokens left out, but for those between which a model thinks."""
        if not self._thought_marks:
            return self._text_of(list(ids), skip_special_tokens=True)
        hidden = self._hidden
        return self._text_of([id_ for id_ in ids if id_ not in hidden], skip_special_tokens=False)

    def _text_of(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        text: str = self.tokenizer.decode(
            ids, skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text

    @cached_property
    def _thought_marks(self) -> frozenset[int]:
        """Control tokens that open or end a thought: without them nobody could tell it from the answer."""
        tokens = self.tokenizer.added_tokens_decoder.items()
        return frozenset(id_ for id_, token in tokens if token.special and is_mark(token.content))

    @cached_property
    def _hidden(self) -> frozenset[int]:
        added = self.tokenizer.added_tokens_decoder.items()
        special = {id_ for id_, token in added if token.special} | set(self.tokenizer.all_special_ids)
        return frozenset(special - self._thought_marks)

    @cached_property
    def _encoder(self) -> PromptEncoder:
        return PromptEncoder(self.tokenizer)


def vocabulary_of(tokenizer: PreTrainedTokenizerFast) -> int:
    """One more than the largest token id: where ids are left out in between, that is more than there are tokens."""
    return max(tokenizer.get_vocab().values(), default=-1) + 1
