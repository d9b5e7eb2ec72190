"""From a prompt to token ids, where control tokens that a person typed stay text."""

import re
from collections.abc import Iterator
from functools import cached_property

from jinja2 import TemplateError
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from engine.contract import BadRequest, Request

# Stands for the prompt while the template is rendered. Private-use letters: no template and no vocabulary holds them.
_PLACEHOLDER = "\ue0fb\ue0a5\ue0fb"

# Texts by which models end a turn or a document. A GGUF names only one of a model's ends.
_END_TEXTS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endofturn|>",
    "<｜end▁of▁sentence｜>",
    "</s>",
)


class PromptEncoder:
    """Encodes with one tokenizer. A prompt without control tokens gets exactly the ids the stock calls give."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._tokenizer = tokenizer
        self._added = {token.content: (id_, token) for id_, token in tokenizer.added_tokens_decoder.items()}
        longest_first = sorted(self._added, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first))) if longest_first else re.compile("(?!)")

    def ids(self, request: Request) -> list[int]:
        """Of what the answers to ``request`` go on from."""
        if request.mode == "chat":
            return self.chat(request.prompt, request.system)
        return self.completion(request.prompt)

    def completion(self, prompt: str) -> list[int]:
        """Ids of the text itself, after whatever the model wants in front of a text."""
        if not self._control.search(prompt):
            return list(self._tokenizer(prompt).input_ids)
        return list(self._tokenizer("").input_ids) + self._plain_ids(prompt)

    def chat(self, prompt: str, system: str = "") -> list[int]:
        """Ids of one user turn, ``system`` (or the template's own) in front and the assistant's turn opened."""
        if not self._tokenizer.chat_template:
            raise BadRequest("This model has no chat template; choose the completion mode.")
        if self._control.search(system):
            raise BadRequest("The system prompt holds a control token of this model; take it out.")
        if system and not self._takes_system(system):
            prompt, system = f"{system}\n\n{prompt}", ""
        if not self._control.search(prompt):
            return list(self._tokenizer(self._render(prompt, system=system), add_special_tokens=False).input_ids)
        before, after = self._render(_PLACEHOLDER, system=system).split(_PLACEHOLDER)
        head, opening = self._cut_after_last_control(before)
        closing, tail = self._cut_before_first_control(after)
        middle = self._plain_ids(opening + prompt + closing)
        return self._template_ids(head) + middle + self._template_ids(tail)

    def end_ids(self) -> frozenset[int]:
        """Ids that end a turn, as far as tokenizer, template and common usage tell."""
        ids = {self._added[text][0] for text in _END_TEXTS if text in self._added}
        if self._tokenizer.eos_token_id is not None:
            ids.add(self._tokenizer.eos_token_id)
        if (end_of_turn := self._end_of_turn()) is not None:
            ids.add(end_of_turn)
        return frozenset(ids)

    def _render(self, content: str, answer: str | None = None, system: str = "") -> str:
        turns = [{"role": "system", "content": system}] if system else []
        turns.append({"role": "user", "content": content})
        if answer is not None:
            turns.append({"role": "assistant", "content": answer})
        rendered = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=answer is None)
        return str(rendered)

    def _takes_system(self, system: str) -> bool:
        """Some templates refuse a system turn, some drop it without a word."""
        try:
            return system in self._render(_PLACEHOLDER, system=system)
        except TemplateError:
            return False

    def _end_of_turn(self) -> int | None:
        """The control token that the template puts right behind an answer."""
        if not self._tokenizer.chat_template:
            return None
        try:
            rendered = self._render("question", _PLACEHOLDER)
        except (TemplateError, TypeError, ValueError, KeyError):
            return None
        _, _, after = rendered.rpartition(_PLACEHOLDER)
        first = self._control.match(after.lstrip())
        return self._added[first.group()][0] if first else None

    def _cut_after_last_control(self, text: str) -> tuple[str, str]:
        end = max((match.end() for match in self._control.finditer(text)), default=0)
        return text[:end], text[end:]

    def _cut_before_first_control(self, text: str) -> tuple[str, str]:
        first = self._control.search(text)
        start = first.start() if first else len(text)
        return text[:start], text[start:]

    def _template_ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False).input_ids) if text else []

    def _plain_ids(self, text: str) -> list[int]:
        """Ids of ``text`` from a tokenizer that has no control tokens."""
        return [id_ for piece in self._pieces(text) for id_ in self._plain.encode(piece, add_special_tokens=False).ids]

    def _pieces(self, text: str) -> Iterator[str]:
        """``text`` whole; or, where the vocabulary itself would turn a control text into its id, cut inside of it."""
        control_ids = {id_ for id_, _ in self._added.values()}
        if control_ids.isdisjoint(self._plain.encode(text, add_special_tokens=False).ids):
            yield text
            return
        start = 0
        for match in self._control.finditer(text):
            yield text[start : match.start() + 1]
            start = match.start() + 1
        yield text[start:]

    @cached_property
    def _plain(self) -> Tokenizer:
        """The same vocabulary and rules without added tokens; the big model object is shared, not copied."""
        full = self._tokenizer.backend_tokenizer
        plain = Tokenizer(full.model)
        for part in ("normalizer", "pre_tokenizer", "decoder"):
            if getattr(full, part) is not None:
                setattr(plain, part, getattr(full, part))
        return plain
