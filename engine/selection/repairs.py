"""Recovers code that is written in another form.

Escaped for HTML, with line numbers, as an edit of an earlier text, or as a string in a JSON object. Each function gives
an empty string where the text is not of its form; whether what it gives parses is for the caller to ask.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from engine.selection.fences import lines_of

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#0*39|#x27);")
_LITERAL_OR_COMMENT = re.compile(r"""\#[^\r\n]*|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'""")
_NUMBERED = re.compile(r"[ \t]*(\d+)(?:[ \t]?[|:.)])?(?:[ \t]|(?=[\r\n]|\Z))")
_REPLACEMENT = re.compile(
    r"^<{5,}[^\r\n]*\r?\n.*?^={5,}[ \t]*\r?\n(.*?)^>{5,}[^\r\n]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL
)
_HEAD_OF_A_DIFF = re.compile(r"diff |index |--- |\+\+\+ |\\ No newline")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_CALL = re.compile(r"\A\s*<(\w+)>\s*(?=[{\[])(.*?)\s*</\1>\s*\Z", re.DOTALL)
_LARGEST_JSON = 1 << 20  # characters


def without_entities(code: str) -> str:
    """Code that was escaped for HTML: entities stand where Python has none. (``a &lt; b`` parses, as two.)"""
    return html.unescape(code) if "&" in code and _ENTITY.search(_LITERAL_OR_COMMENT.sub("", code)) else ""


def without_numbers(code: str) -> str:
    """The lines behind their numbers, if these count on by one."""
    kept, last = [], 0
    for line in lines_of(code):
        match = _NUMBERED.match(line)
        if match is None or (last and int(match[1]) != last + 1):
            return ""
        last = int(match[1])
        kept.append(line[match.end() :])
    return "".join(kept) if len(kept) > 1 else ""


def replaced(code: str) -> str:
    """What edits put in the place of an older text (``<<<<<<< SEARCH``, ``=======``, ``>>>>>>> REPLACE``)."""
    return _REPLACEMENT.sub(r"\1", code) if "<<<<<" in code and _REPLACEMENT.search(code) else ""


def new_side(diff: str) -> str:
    """The text that a unified diff leads to, if it shows all of it: one stretch, from the first line on."""
    kept: list[str] = []
    hunks = 0
    for line in lines_of(diff):
        if hunk := _HUNK.match(line):
            hunks += 1
            if hunks > 1 or int(hunk[1]) > 1 or kept:
                return ""
        elif line.startswith(("+", " ")) and not line.startswith("+++ "):
            kept.append(line[1:])
        elif not line.strip():
            kept.append(line)
        elif not line.startswith("-") and not _HEAD_OF_A_DIFF.match(line):
            return ""
    return "".join(kept)


def strings_in_json(text: str) -> list[str]:
    """The strings of ``text``, the longest first, if it is a JSON object or array, or the call of a tool."""
    if call := _CALL.match(text):
        text = call[2]
    if not text.strip().startswith(("{", "[")) or len(text) > _LARGEST_JSON:
        return []
    try:
        value = json.loads(text, strict=False)  # models write line ends as they are
    except (ValueError, RecursionError):
        return []
    return sorted(_strings(value), key=len, reverse=True)


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
