"""A model's chat template: in which form it wants a text, and whether the text arrives."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerFast

from engine.contract import BadRequest, Turn

# Stands for a text. Private-use letters: no template holds them.
MARK = "\ue0fb"
SOME_TEXT = f"{MARK}\ue100{MARK}"
# A template is a program of somebody else's: what it raises, and what Python raises in the middle of it.
ERRORS = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
Message = tuple[str, str]  # a role, which may be the system's, and its text
_OTHERWISE = "choose the completion mode, or another model"


class ChatTemplate:
    """Templates of models that see pictures take a list of parts where others take a text, for each role by itself:
    which form carries a text through is tried out, once."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self._tokenizer = tokenizer

    @cached_property
    def why_not(self) -> str:
        """Why this model cannot chat: one sentence, or empty."""
        template = self._tokenizer.chat_template
        if not template:
            return "This model has no chat template; choose the completion mode."
        if isinstance(template, dict) and "default" not in template:
            return f"This model's chat templates are for {' and '.join(sorted(template))} alone; {_OTHERWISE}."
        if self._in_parts["user"] is None:
            reason = self._reason([("user", SOME_TEXT)])
            why = f"does not work ({reason})" if reason else "leaves out what the user says"
            return f"This model's chat template {why}; {_OTHERWISE}."
        return ""

    @property
    def takes_system(self) -> bool:
        """Some templates refuse a system turn, some drop it without a word."""
        return self._in_parts["system"] is not None

    def render(self, turns: Sequence[Turn], system: str = "", answer: str | None = None) -> str:
        """The conversation as text: up to where an answer begins, or with ``answer`` and what ends it.

        Raises whatever the template raises: see ``ERRORS``.
        """
        conversation = [("system", system)] if system else []
        conversation += [(turn.role, turn.text) for turn in turns]
        if answer is not None:
            conversation.append(("assistant", answer))
        return self._rendered(conversation, {role: bool(form) for role, form in self._in_parts.items()}, answer is None)

    @cached_property
    def _in_parts(self) -> dict[str, bool | None]:
        """By role: whether a text is given as parts, or as it is; None where neither arrives."""
        user = self._form("user", [("user", SOME_TEXT)], {})
        question = ("user", "question")
        forms = {"user": bool(user)}
        system = self._form("system", [("system", SOME_TEXT), question], forms)
        conversation = [question, ("assistant", SOME_TEXT), question]
        return {"user": user, "system": system, "assistant": self._form("assistant", conversation, forms)}

    def _form(self, role: str, conversation: Sequence[Message], known: dict[str, bool]) -> bool | None:
        first = known.get("user", False)
        for in_parts in (first, not first):
            try:
                rendered = self._rendered(conversation, known | {role: in_parts}, True)
            except ERRORS:
                continue
            # A list that is put in as it is would carry the text, and its own brackets with it.
            if SOME_TEXT in rendered and "'text'" not in rendered and '"text"' not in rendered:
                return in_parts
        return None

    def _reason(self, conversation: Sequence[Message]) -> str:
        try:
            self._rendered(conversation, {}, True)
        except ERRORS as error:
            return str(error).strip().rstrip(".") or type(error).__name__
        return ""

    def _rendered(self, conversation: Sequence[Message], in_parts: dict[str, bool], opens_answer: bool) -> str:
        messages = [{"role": role, "content": _content(text, in_parts.get(role, False))} for role, text in conversation]
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=opens_answer))


def arrives(text: str, rendered: str) -> bool:
    """Whether a template carried ``text`` through; many take off the blanks around it."""
    return text.strip() in rendered


def check_arrival(text: str, rendered: str) -> None:
    """Raises BadRequest when it did not."""
    if not arrives(text, rendered):
        raise BadRequest(f"This model's chat template leaves out what the user says; {_OTHERWISE}.")


def _content(text: str, in_parts: bool) -> Any:
    return [{"type": "text", "text": text}] if in_parts else text
