"""Where a text ends, as far as the text itself says it: what the sampler and a server's engine share. No torch here."""

from typing import Protocol

from engine.function_end import FunctionEnd
from engine.selection.choice import is_beside_the_point
from engine.selection.code_blocks import block_of
from engine.selection.fences import lines_of
from engine.selection.scanner import Scanner


class Rule(Protocol):
    """Looks at a text that grows."""

    def look(self, text: str) -> tuple[int | None, int]:
        """Where ``text`` ends, or None so far; and how much of it is certain to be shown whatever follows."""


class StopStrings:
    """The text ends before the first of these."""

    def __init__(self, stop: tuple[str, ...]):
        self._stop = stop
        self._longest = max(map(len, stop))
        self._seen = 0

    def look(self, text: str) -> tuple[int | None, int]:
        start = max(0, self._seen - self._longest + 1)
        self._seen = len(text)
        found = [at for at in (text.find(stop, start) for stop in self._stop) if at >= 0]
        return min(found, default=None), len(text) - self._tail(text)

    def _tail(self, text: str) -> int:
        """Length of the longest end of ``text`` that could be the beginning of a stop string."""
        longest = min(len(text), self._longest - 1)
        return next((n for n in range(longest, 0, -1) if any(s.startswith(text[-n:]) for s in self._stop)), 0)


class BlockEnd:
    """The text ends with the closing fence of its first block with an answer's code in it, outside of thoughts.

    Shell commands, printed output, imports alone, tests of what is yet to come and empty blocks are no answers. A
    closing fence counts when its line has ended, because more on it would make it an opening one, and outside of
    strings; what stands behind it on that line was shown by then, and stays.
    """

    def __init__(self, thinking: bool = False) -> None:
        self._scanner = Scanner(thinking)
        self._seen = 0  # characters of whole lines that were looked at

    def look(self, text: str) -> tuple[int | None, int]:
        whole = max(text.rfind("\n", self._seen), text.rfind("\r", self._seen)) + 1
        for line in lines_of(text[self._seen : whole]):
            known = len(self._scanner.found)
            self._scanner.take(line, self._seen)
            self._seen += len(line)
            for found in self._scanner.found[known:]:
                if found.fenced_off and not is_beside_the_point(block_of(found)):
                    return self._seen - len(line) + len(line.rstrip("\r\n")), len(text)
        # Nothing is held back: until its line is over, a fence may turn out to open a block, and is shown either way.
        return None, len(text)


class TextEnd:
    """Cuts a text that arrives in pieces at the earliest end any rule finds, holding back no more than they must.

    ``code_stop`` is that of ``Sampling``; ``before``: the text that this one goes on from, which a function may have
    begun in; ``thinking``: it goes on from a thought that was opened for it.
    """

    def __init__(self, stop: tuple[str, ...] = (), code_stop: str = "", before: str = "", thinking: bool = False):
        self._text, self._shown = "", 0
        self._rules: list[Rule] = [StopStrings(stop)] if stop else []
        if code_stop == "block":
            self._rules.append(BlockEnd(thinking))
        elif code_stop == "function":
            self._rules.append(FunctionEnd(before))
        self.cut: int | None = None  # characters that stay, once an end was found

    @property
    def can_come(self) -> bool:
        """Whether anything a text says could end it."""
        return bool(self._rules)

    @property
    def length(self) -> int:
        """Characters that came, shown or not."""
        return len(self._text)

    def feed(self, piece: str) -> tuple[str, bool]:
        """Text that is certain to be shown, and whether the text has ended."""
        self._text += piece
        looks = [rule.look(self._text) for rule in self._rules]
        self.cut = min((end for end, _ in looks if end is not None), default=None)
        until = min((safe for _, safe in looks), default=self.length) if self.cut is None else self.cut
        return self._show(until), self.cut is not None

    def rest(self) -> str:
        """What was held back, when nothing more will come."""
        return self._show(self.length)

    def _show(self, until: int) -> str:
        shown, self._shown = self._shown, until
        return self._text[shown:until]
