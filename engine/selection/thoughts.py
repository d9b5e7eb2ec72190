"""What a model thought before it answered: where that begins and ends, in the ways models mark it.

``<think>`` and its kin (DeepSeek, Qwen, Seed and many more), ``[THINK]`` (Magistral), the channels of gpt-oss, with
their control tokens or without, and the control tokens of a few others. No part of a thought is an answer.
"""

import re

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|inner_monologue|seed:think"
_FINAL = r"<\|channel\|>final\b[^<\n]*(?:<\|constrain\|>[^<\n]*)?<\|message\|>"
# What opens a thought, and what ends it; \1 is the name that opened it.
_PAIRS = (
    (rf"<({_NAMES})(?:\s[^<>\n]*)?>", r"</\1\s*>"),
    (r"\[(think|thinking|thought|reasoning)\]", r"\[/\1\]"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b", _FINAL),
)
_OPENINGS = tuple((re.compile(rf"[ \t]*{opening}", re.IGNORECASE), closing) for opening, closing in _PAIRS)
# Of gpt-oss, where control tokens are left out of the text: the name of a channel runs into what is said on it.
_BARE_CHANNEL = re.compile(r"[ \t]*(?i:analysis)(?=[A-Z\n])")
_BARE_FINAL = re.compile(r"assistant(?:commentary)?final")
_CLOSINGS = re.compile(
    rf"</(?:{_NAMES})\s*>|\[/(?:think|thinking|thought|reasoning)\]|◁/think▷|<\|end_of_thought\|>"
    rf"|<\|end_thinking\|>|{_FINAL}",
    re.IGNORECASE,
)
ANY_END = re.compile(rf"{_CLOSINGS.pattern}|<channel\|>", re.IGNORECASE)
_LEFT_OPEN = re.compile(
    r"(?:" + "|".join(opening for opening, _ in _PAIRS).replace(r"\b", "") + r")\s*\Z", re.IGNORECASE
)
_LONGEST_MARK = 80  # characters
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")


def opening(line: str, first: bool) -> tuple[int, re.Pattern[str]] | None:
    """How far the mark goes that opens a thought at the beginning of ``line``, and what will end the thought.

    ``first``: nothing was said before.
    """
    if line.lstrip(" \t")[:1] not in ("<", "[", "◁", "a", "A"):
        return None
    for pattern, closing in _OPENINGS:
        if match := pattern.match(line):
            name = match[1] if match.re.groups else ""
            return match.end(), re.compile(closing.replace(r"\1", re.escape(name or "")), re.IGNORECASE)
    if first and (match := _BARE_CHANNEL.match(line)):
        return match.end(), _BARE_FINAL
    return None


def stray_end(line: str, alone: bool = False) -> int | None:
    """How far a mark goes that ends a thought nobody opened: a template may open it, before the answer begins.

    A mark in quotes is code or prose about such marks. ``alone``: it must begin its line.
    """
    if ">" not in line and "]" not in line and "▷" not in line:
        return None
    for match in _CLOSINGS.finditer(line):
        before, after = line[: match.start()], line[match.end() :]
        if not before.strip():
            return match.end()
        if not alone and not _inside_quotes(before, after):
            return match.end()
    return None


def left_open(prompt: str) -> bool:
    """Whether a prompt, as the model reads it, ends with an opened thought."""
    return _LEFT_OPEN.search(prompt[-_LONGEST_MARK:]) is not None


def is_mark(token: str) -> bool:
    """Whether a token of a vocabulary is what opens or ends a thought."""
    return _LEFT_OPEN.fullmatch(token) is not None or ANY_END.fullmatch(token) is not None


class LeadingThought:
    """A thought at the beginning of a text that grows: where it is over."""

    def __init__(self) -> None:
        self._closer: re.Pattern[str] | None = None
        self._searched = 0

    @property
    def has_begun(self) -> bool:
        return self._closer is not None

    def over(self, text: str) -> int | None:
        """Where what is said begins: 0 without a thought, None as long as that cannot be known."""
        if self._closer is None:
            begins = len(text) - len(text.lstrip())
            opened = opening(text[begins : begins + _LONGEST_MARK], first=False)
            if opened is None:
                return None if _may_open(text[begins:]) else 0
            self._searched, self._closer = begins + opened[0], opened[1]
        end = self._closer.search(text, self._searched)
        self._searched = max(self._searched, len(text) - _LONGEST_MARK)
        return end.end() if end else None


def without_thoughts(text: str) -> str:
    """A whole text without the thought that it begins with."""
    begins = LeadingThought().over(text)
    return "" if begins is None and text.strip() and not _may_open(text.lstrip()) else text[begins or 0 :]


def _may_open(begun: str) -> bool:
    """Whether a text that begins so could still go on as the mark of a thought."""
    return not begun or (begun[0] in "<[◁" and len(begun) < _LONGEST_MARK and not re.search(r"[>\]▷\s]", begun))


def _inside_quotes(before: str, after: str) -> bool:
    plain = _APOSTROPHE.sub("", before)
    return any(plain.count(mark) % 2 for mark in "\"'`") or after[:1] in ('"', "'", "`", "\\")
