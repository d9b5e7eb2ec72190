"""From a prompt to token ids, where control tokens that a user typed stay text."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from engine.contract import BadRequest, Request, Turn
from engine.models.chat_template import ERRORS, MARK, SOME_TEXT, ChatTemplate, arrives, check_arrival
from engine.models.infilling import FILE_MARKS, PREFIX, SUFFIX, layout_of

_PLACEHOLDER = re.compile(f"{MARK}(.){MARK}")  # stands for the text of one turn while the template is rendered

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
    "<|EOT|>",
    *FILE_MARKS,  # what would follow belongs to another part of a file, or to another file
)


class PromptEncoder:
    """Encodes with one tokenizer. A prompt without control tokens gets exactly the ids the stock calls give."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._tokenizer, self._template = tokenizer, ChatTemplate(tokenizer)
        self._added = {token.content: (id_, token) for id_, token in tokenizer.added_tokens_decoder.items()}
        longest_first = sorted(self._added, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first))) if longest_first else re.compile("(?!)")

    def ids(self, request: Request) -> list[int]:
        """Of what the answers to ``request`` go on from. Raises BadRequest where the model knows no such mode."""
        match request.mode:
            case "chat":
                return self.chat(request.prompt, request.system, request.turns)
            case "completion":
                return self.completion(request.prompt)
            case _:
                return self.gap(request.prompt, request.suffix)

    def completion(self, prompt: str) -> list[int]:
        """Ids of the text itself, after whatever the model wants in front of a text."""
        if not self._control.search(prompt):
            return list(self._tokenizer(prompt).input_ids)
        return self._front() + self._plain_ids(prompt)

    def gap(self, before: str, after: str) -> list[int]:
        """Ids by which a model that can fill gaps is asked for what stands between two texts."""
        ids = self._front()
        for part in layout_of(self._tokenizer.backend_tokenizer.token_to_id):
            if part == PREFIX:
                ids += self._plain_ids(before)
            elif part == SUFFIX:
                ids += self._continuing_ids(after)
            else:
                ids.append(self._tokenizer.backend_tokenizer.token_to_id(part))
        return ids

    def chat(self, prompt: str, system: str = "", turns: Sequence[Turn] = ()) -> list[int]:
        """Ids of a conversation up to a user's ``prompt``, and the assistant's turn opened.

        ``system``, or the template's own, comes in front. What one prompt is encoded to is the beginning of what the
        next one is, wherever the template lets an earlier turn be what it was: its keys and values can be kept.
        """
        if self._template.why_not:
            raise BadRequest(self._template.why_not)
        if self._control.search(system):
            raise BadRequest("The system prompt holds a control token of this model; take it out.")
        turns_shown = [*turns, Turn("user", prompt)]
        if system and not self._takes_system(system):
            first = next(at for at, turn in enumerate(turns_shown) if turn.role == "user")
            turns_shown[first] = Turn("user", f"{system}\n\n{turns_shown[first].text}")
            system = ""
        shown = [Turn(turn.role, self._stand_in(at, turn.text)) for at, turn in enumerate(turns_shown)]
        if not arrives(shown[-1].text, self._render(shown, system)):
            # The template takes the prompt itself for something, such as the end of thoughts: it never gets to see it.
            shown[-1] = Turn("user", _placeholder(len(turns_shown) - 1))
            check_arrival(shown[-1].text, self._render(shown, system))
        return self._ids_of(turns_shown, shown, system)

    def _ids_of(self, turns_shown: Sequence[Turn], shown: Sequence[Turn], system: str) -> list[int]:
        texts = [turn.text for turn in turns_shown]
        ids: list[int] = []
        known = ""  # what is encoded: up to where an answer begins
        for at, turn in enumerate(turns_shown):
            if turn.role != "user":
                continue
            rendered = self._render(shown[: at + 1], system)
            if not rendered.startswith(known):
                ids, known = [], ""
            ids += self._encoded(rendered[len(known) :], texts)
            known = rendered
        return ids

    def end_ids(self) -> frozenset[int]:
        """Ids that end a turn, as far as tokenizer, template and common usage tell."""
        ids = {self._added[text][0] for text in _END_TEXTS if text in self._added}
        if self._tokenizer.eos_token_id is not None:
            ids.add(self._tokenizer.eos_token_id)
        if (end_of_turn := self._end_of_turn()) is not None:
            ids.add(end_of_turn)
        return frozenset(ids)

    def _front(self) -> list[int]:
        """What the model wants in front of a text."""
        return list(self._tokenizer("").input_ids)

    def _stand_in(self, at: int, text: str) -> str:
        """What the template is given for the text of turn ``at``: a placeholder where control tokens were typed."""
        harmless = not self._control.search(text) and MARK not in text
        return text if harmless else _placeholder(at)

    def _render(self, turns: Sequence[Turn], system: str) -> str:
        try:
            return self._template.render(turns, system)
        except ERRORS as error:
            reason = str(error).strip().rstrip(".") or type(error).__name__
            raise BadRequest(f"This model's chat template does not take these turns: {reason}.") from error

    def _encoded(self, rendered: str, texts: Sequence[str]) -> list[int]:
        """Ids of a stretch of the rendered conversation; ``texts`` stand where their placeholders are."""
        literals, marks = _PLACEHOLDER.split(rendered)[::2], _PLACEHOLDER.findall(rendered)
        ids: list[int] = []
        run = ""  # ordinary text that may go on: a typed text and what the template puts right beside it
        for at, literal in enumerate(literals):
            is_last = at == len(marks)
            closing, rest = self._cut_before_first_control(literal) if at else ("", literal)
            run += closing
            if rest or is_last:
                head, opening = (rest, "") if is_last else self._cut_after_last_control(rest)
                ids += self._plain_ids(run) + self._template_ids(head)
                run = opening
            if not is_last:
                run += texts[ord(marks[at]) - 0xE100]
        return ids

    def _takes_system(self, system: str) -> bool:
        try:
            return self._template.takes_system and arrives(
                system, self._template.render([Turn("user", SOME_TEXT)], system)
            )
        except ERRORS:
            return False

    def _end_of_turn(self) -> int | None:
        """The control token that the template puts right behind an answer."""
        if not self._tokenizer.chat_template:
            return None
        try:
            rendered = self._template.render([Turn("user", "question")], answer=SOME_TEXT)
        except ERRORS:
            return None
        _, _, after = rendered.rpartition(SOME_TEXT)
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
        if not text:
            return []
        return [id_ for piece in self._pieces(text) for id_ in self._plain.encode(piece, add_special_tokens=False).ids]

    def _continuing_ids(self, text: str) -> list[int]:
        """Ids of a text that goes on from another: without the blank some tokenizers put in front of every text."""
        first, rest = (self._plain.encode(f"\n{more}", add_special_tokens=False) for more in ("", text))
        if first.tokens[:1] == ["▁"] and rest.ids[: len(first.ids)] == first.ids:
            return list(rest.ids[len(first.ids) :])
        return self._plain_ids(text)

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


def _placeholder(at: int) -> str:
    return f"{MARK}{chr(0xE100 + at)}{MARK}"
