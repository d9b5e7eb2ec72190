"""Reads an answer line by line: what is thought, which blocks of code there are, and what stands outside of them.

Every line is looked at once, so that an answer can be followed while it grows.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from engine.selection import thoughts
from engine.selection.fences import (
    MARKDOWN,
    PYTHON,
    Fence,
    closes,
    follow,
    is_bare_fence,
    lines_of,
    opening,
    without_indent,
    without_quotation,
)

_END_OF_TURN = re.compile(
    r"(?:<\|(?:return|end|call|im_end|endoftext|eot_id|end_of_solution|end_response)\|>)+\s*\Z", re.I
)
_NEXT_TURN = re.compile(r"<\|(?:return|im_end|endoftext|eot_id|end_of_text)\|>\s*\Z|<end_of_turn>\s*\Z", re.I)


@dataclass(frozen=True)
class ScannedBlock:
    """A block in an answer. ``begins``, ``ends``: of its code; ``after``: right behind its closing fence.

    ``closed``: it has an end of its own; ``fenced_off``: and that is a closing fence, not the next opening one.
    ``caption``: the last line of prose before it.
    """

    code: str
    fence: Fence
    begins: int
    ends: int
    after: int
    closed: bool
    fenced_off: bool
    caption: str


class Scanner:
    """``found``, ``outside``: the blocks so far, and where the lines outside of them begin and end.

    ``thinking``: the answer begins inside a thought; ``sees_thoughts`` False: none is looked for. ``restarts`` counts
    how often all that was there turned out to be a thought. All positions are those in the whole answer.
    """

    def __init__(self, thinking: bool = False, sees_thoughts: bool = True) -> None:
        self.found: list[ScannedBlock] = []
        self.outside: list[tuple[int, int]] = []
        self.restarts = 0
        self.thought = (0, 0)  # where the last thought begins and ends
        self.fence: Fence | None = None  # the block that is open ...
        self.begins = 0  # ... and where its code begins
        self._sees_thoughts = sees_thoughts
        self._closer = thoughts.ANY_END if thinking else None
        self._pieces: list[str] = []
        self._quote = ""  # a triple quote that is open: a fence inside a string closes nothing
        self._caption = ""
        self._fallback: tuple[int, int, int, bool] | None = None  # of a block that nothing else closes
        self._trusts_quotes, self._counts_marks = True, True
        self._turn_is_over = False  # the model went on to write the next turns, which are no part of its answer

    @property
    def thinks(self) -> bool:
        return self._closer is not None

    @property
    def is_silent(self) -> bool:
        """Nothing was said yet, but for thoughts."""
        return not (self.found or self.outside or self.fence)

    def take(self, line: str, at: int) -> None:
        """Look at the line that begins at ``at``."""
        if self._turn_is_over:
            return
        if self._closer is not None:
            if end := self._closer.search(line):
                self._closer = None
                self.restarts += self.is_silent
                self.thought = self.thought[0], at + end.start()
                self._go_on(line, at, end.end())
        elif self.fence is not None:
            self._inside(line, at)
        else:
            self._outside(line, at)
        if self.found and self.fence is None and self._closer is None and "<" in line:
            self._turn_is_over = self._turn_is_over or _NEXT_TURN.search(line) is not None

    def fall_back(self) -> int | None:
        """At the end of the answer: close the open block where it might have been meant to end.

        The position to go on reading from, or None when there is no such place.
        """
        if self.fence is None or self._fallback is None:
            return None
        at, after, pieces, in_quotes = self._fallback
        if in_quotes:
            self._trusts_quotes = False  # they never balance, so they say nothing about this answer
        else:
            self._counts_marks = False
        del self._pieces[pieces:]
        self._close(at, after)
        return after

    def finish(self, length: int) -> None:
        """The answer ends here."""
        if self.fence is not None:
            self._close(length, length, closed=False)
        if self._closer is not None:
            self.thought = self.thought[0], length

    def _go_on(self, line: str, at: int, cut: int) -> None:
        rest = line[cut:]
        if rest.strip():
            self.take(rest, at + cut)

    def _forget(self, at: int) -> None:
        """All before ``at`` was a thought."""
        self.found.clear()
        self.outside.clear()
        self.fence, self._caption, self.thought = None, "", (0, at)
        self.restarts += 1

    def _outside(self, line: str, at: int) -> None:
        if self._sees_thoughts and (opened := thoughts.opening(line, self.is_silent)):
            cut, self._closer = opened
            self.thought = at + cut, at + cut
            self._go_on(line, at, cut)
        elif self._sees_thoughts and (end := thoughts.stray_end(line)):
            self._forget(at)
            self._go_on(line, at, end)
        elif fence := opening(line):
            self._open(fence, line, at)
        elif line.strip():
            shown = _END_OF_TURN.sub("", line)
            self.outside.append((at, at + len(shown)))
            self._caption = shown
        elif self.outside:
            self.outside.append((at, at + len(line)))

    def _open(self, fence: Fence, line: str, at: int) -> None:
        self.fence, self._pieces, self._quote, self._fallback = fence, [], "", None
        self.begins = at + (len(line) if fence.code_at < 0 else fence.code_at)
        if fence.code_at >= 0:
            self._inside(line[fence.code_at :], at + fence.code_at)

    def _inside(self, line: str, at: int) -> None:
        fence = self.fence
        assert fence is not None
        bare = without_quotation(line, fence.quotations)
        may_think = self._sees_thoughts and fence.may_hold_python and not self._quote
        if may_think and (end := thoughts.stray_end(line, alone=True)):
            self._forget(at)
            self._go_on(line, at, end)
        elif closes(bare, fence):
            self._close_or_wait(line, at)
        elif self._is_doubled(inner := opening(line)):
            assert inner is not None
            self._open(inner, line, at)
        elif fence.tag and (tag_at := line.lower().find(fence.tag)) >= 0 and not self._quote:
            self._cut(line, at, tag_at, tag_at + len(fence.tag))
            self._go_on(line, at, tag_at + len(fence.tag))
        else:
            self._read(line, bare, at, inner)

    def _close_or_wait(self, line: str, at: int) -> None:
        """A closing fence closes, unless a string is open: then it may belong to that."""
        if self._quote and self._trusts_quotes:
            self._fallback = self._fallback or (at, at + len(line.rstrip("\r\n")), len(self._pieces), True)
            self._keep(line)
        else:
            self._close(at, at + len(line.rstrip("\r\n")))

    def _is_doubled(self, inner: Fence | None) -> bool:
        """Whether ``inner`` opens once more what is open and still empty."""
        fence = self.fence
        assert fence is not None
        is_empty = not any(piece.strip() for piece in self._pieces)
        named = inner is not None and (inner.language != "" or inner.code_at >= 0 or fence.tag != "")
        return named and is_empty and fence.language not in MARKDOWN

    def _read(self, line: str, bare: str, at: int, inner: Fence | None) -> None:
        """A line that is code, unless ticks in it say that the block is over."""
        fence = self.fence
        assert fence is not None
        ticks = follow(line, self._quote)[1] if fence.may_hold_python else line.find("```")
        has_code = any(piece.strip() for piece in self._pieces) or line[: max(0, ticks)].strip() != ""
        if ticks >= 0 and has_code and self._is_over(line, ticks):
            self._end_at_ticks(line, at, ticks)
        elif inner is not None and has_code and not self._quote and self._begins_again(inner):
            self._close(at, at, fenced_off=False)
            self._open(inner, line, at)
        elif is_bare_fence(bare) and has_code and not self._quote:
            if self._counts_marks:
                self._fallback = self._fallback or (at, at + len(line.rstrip("\r\n")), len(self._pieces), False)
                self._keep(line)
            else:
                self._close(at, at + len(line.rstrip("\r\n")))
        else:
            self._keep(line)

    def _is_over(self, line: str, ticks: int) -> bool:
        """Outside of strings and comments Python has no ticks; elsewhere three of them behind code are a fence."""
        fence = self.fence
        assert fence is not None
        if fence.names_python and not fence.tag:
            return True
        before, rest = line[:ticks], line[ticks:].strip()
        return fence.language not in MARKDOWN and "`" not in before and before.strip() != "" and rest.strip("`") == ""

    def _begins_again(self, inner: Fence) -> bool:
        """A fence that names Python inside a block that names nothing: the block was closed by no fence."""
        fence = self.fence
        assert fence is not None
        return not fence.language and inner.language in PYTHON and inner.marks == fence.marks

    def _end_at_ticks(self, line: str, at: int, ticks: int) -> None:
        rest = line[ticks:].rstrip("\r\n")
        behind = len(rest) - len(rest.lstrip("`"))
        following = opening(rest)
        names_block = following is not None and (following.language in PYTHON or following.code_at >= 0)
        self._cut(line, at, ticks, ticks + behind, fenced_off=not names_block)
        if names_block and following is not None:
            self._open(following, line[ticks:], at + ticks)
        else:
            self._go_on(line, at, ticks + behind)

    def _cut(self, line: str, at: int, code_ends: int, after: int, fenced_off: bool = True) -> None:
        """The block ends inside of a line."""
        if line[:code_ends].strip():
            self._pieces.append(line[:code_ends].rstrip(" \t"))
        self._close(at + code_ends, at + after, fenced_off=fenced_off)

    def _keep(self, line: str) -> None:
        fence = self.fence
        assert fence is not None
        if fence.may_hold_python:
            self._quote = follow(line, self._quote)[0] if self._trusts_quotes else ""
        self._pieces.append(line)

    def _close(self, ends: int, after: int, closed: bool = True, fenced_off: bool = True) -> None:
        fence = self.fence
        assert fence is not None
        plain = (without_indent(without_quotation(piece, fence.quotations), fence.width) for piece in self._pieces)
        own, self._caption = self._caption, ""
        self.found.append(
            ScannedBlock("".join(plain), fence, self.begins, ends, after, closed, closed and fenced_off, own)
        )
        self.fence, self._pieces, self._quote, self._fallback = None, [], "", None


def scan(answer: str, sees_thoughts: bool = True) -> Scanner:
    """Read a whole answer."""
    scanner, lines = Scanner(sees_thoughts=sees_thoughts), lines_of(answer)
    starts = [0, *accumulate(map(len, lines))]
    at = 0
    while True:
        while at < len(lines):
            scanner.take(lines[at], starts[at])
            at += 1
        after = scanner.fall_back()
        if after is None:
            break
        at = bisect_left(starts, after, hi=len(lines))
    scanner.finish(len(answer))
    return scanner
