"""Where the first top-level function of a completion is over: before the next statement at the margin."""

import re
from dataclasses import dataclass

from engine.selection.thoughts import LeadingThought

_DEFINITION = re.compile(r"(?:async[ \t]+)?def\b|class\b")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass
class PythonState:
    """Follows Python text character by character, as far as it takes to know which lines begin a statement.

    (The standard library's tokenizer wants whole statements; this one may stop anywhere, also inside a token.)
    """

    quote: str = ""  # the string that is open, by its quotation marks
    depth: int = 0  # of brackets
    comment: bool = False
    continued: bool = False  # a backslash ended the line before
    _escaped: bool = False
    _marks: int = 0  # quotation marks in a row, inside a string of their kind
    _is_fresh: bool = False  # nothing is in the string yet
    _empty: str = ""  # the mark of an empty string that ended just now: one more makes it a triple one

    @property
    def inside(self) -> bool:
        """A line that began now would go on with a statement."""
        return bool(self.quote) or self.depth > 0 or self.continued

    def take(self, char: str) -> None:
        if char == "\r":
            return
        empty, self._empty = self._empty, ""
        if self.quote:
            self._in_string(char)
        elif char == "\n":
            self.continued, self._escaped, self.comment = self._escaped, False, False
        elif not self.comment:
            self.continued, self._escaped = False, char == "\\"
            self.comment = char == "#"
            self.depth = max(0, self.depth + _BRACKETS.get(char, 0))
            if char in "'\"":
                self.quote = 3 * char if char == empty else char
                self._marks, self._is_fresh = 0, True

    def _in_string(self, char: str) -> None:
        is_fresh, self._is_fresh = self._is_fresh, False
        if self._escaped or char == "\\":
            self._escaped, self._marks = not self._escaped, 0
        elif char == self.quote[0]:
            self._marks += 1
            if self._marks == len(self.quote):
                self._empty = char if is_fresh and len(self.quote) == 1 else ""
                self.quote = ""
        else:
            self._marks = 0
            if char == "\n" and len(self.quote) == 1:
                self.quote = ""  # somebody forgot to close it


class FunctionEnd:
    """A text that goes on from ``before`` ends with its first top-level function (or class).

    That is the one ``before`` leaves open, if the text adds to it, else the first that begins in the text. Blank lines
    and comments at the margin belong to the function only if more of it follows, so they are held back until then.
    A thought that the text begins with is no part of it.
    """

    def __init__(self, before: str = ""):
        self._before, self._state = before, PythonState()
        self._thought: LeadingThought | None = LeadingThought()
        self._at = 0  # characters that were looked at, of both texts together
        self._line = 0  # where the line begins that is being looked at ...
        self._is_statement = True  # ... which begins a statement ...
        self._has_code = False  # ... and has more on it than blanks and a comment at the margin
        self._is_open = False  # inside a function ...
        self._is_own = False  # ... that the text itself added to
        self._kept = 0  # end of what surely belongs to the text
        self._end: int | None = None
        self._follow(before)
        self._kept = len(before)

    def look(self, text: str) -> tuple[int | None, int]:
        """See ``engine.text_end.Rule``."""
        own = len(self._before)
        if self._thought is not None:
            begins = self._thought.over(text)
            if begins is None:
                return None, len(text) if self._thought.has_begun else 0
            self._thought = None
            if begins:
                self._at = self._line = self._kept = own + begins
        self._follow(self._before + text)
        return None if self._end is None else self._end - own, self._kept - own

    def _follow(self, text: str) -> None:
        while self._at < len(text) and self._end is None:
            char = text[self._at]
            if self._at == self._line and self._is_statement and not char.isspace() and char != "#":
                self._begin_statement()
            if self._end is None:
                self._take(text, char)

    def _begin_statement(self) -> None:
        """At the margin: the function before it is over, and the text with it if that was the text's own."""
        if self._is_open and self._is_own:
            self._end = self._kept
        self._is_open = False

    def _take(self, text: str, char: str) -> None:
        at_margin = self._at == self._line and self._is_statement
        is_aside = char.isspace() or (char == "#" and at_margin) or (self._state.comment and not self._has_code)
        self._has_code = self._has_code or not is_aside or (self._state.inside and not self._state.continued)
        self._state.take(char)
        self._at += 1
        if self._has_code and self._is_open and self._at > len(self._before):
            self._is_own = True
        if char == "\n" and self._is_statement and _DEFINITION.match(text, self._line):
            self._is_open, self._is_own = True, self._at > len(self._before)
        if self._has_code or not self._is_open:
            self._kept = self._at
        if char == "\n":
            self._line, self._is_statement, self._has_code = self._at, not self._state.inside, False
