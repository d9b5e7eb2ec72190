"""Where a text ends, as far as the text itself says it: what the sampler and a server's engine share. No torch here."""


class StopStrings:
    """Finds the first stop string in a text that arrives in pieces, holding back no more than it must."""

    def __init__(self, stop: tuple[str, ...]):
        self._stop = stop
        self._held = ""

    def feed(self, piece: str) -> tuple[str, bool]:
        """Text that is certain to be shown, and whether a stop string has ended it."""
        text = self._held + piece
        found = [at for at in map(text.find, self._stop) if at >= 0]
        if found:
            self._held = ""
            return text[: min(found)], True
        keep = self._tail(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def rest(self) -> str:
        """What was held back, when nothing more will come."""
        held, self._held = self._held, ""
        return held

    def _tail(self, text: str) -> int:
        """Length of the longest end of ``text`` that could be the beginning of a stop string."""
        longest = min(len(text), max(map(len, self._stop), default=1) - 1)
        return next((n for n in range(longest, 0, -1) if any(s.startswith(text[-n:]) for s in self._stop)), 0)
