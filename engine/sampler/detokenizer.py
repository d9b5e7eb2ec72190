"""From tokens to text while they arrive, when one character may be spread over several tokens."""

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]  # token ids -> text, control tokens left out
REPLACEMENT = "\ufffd"  # what bytes decode to that do not make a character yet


class Detokenizer:
    """All pieces together are the text of all tokens.

    A token's text depends on its neighbours (byte pieces of a character, a leading blank), so a short window is
    decoded again with each token and the difference is what is new. (The tokenizers library has a decode stream of
    its own; it keeps back what ends in the middle of a character, and cannot be asked for it.)
    """

    def __init__(self, decode: Decode):
        self._decode = decode
        self._window: list[int] = []
        self._known = 0  # tokens of the window whose text has been given

    def add(self, token: int) -> str:
        """The text that this token completes; empty in the middle of a character."""
        before = self._decode(self._window[: self._known])
        self._window.append(token)
        now = self._decode(self._window)
        if now.endswith(REPLACEMENT) or len(now) <= len(before):
            return ""
        self._window, self._known = self._window[self._known :], len(self._window) - self._known
        return now[len(before) :]

    def flush(self) -> str:
        """What is left when no token will follow: the replacement mark for an unfinished character."""
        before = self._decode(self._window[: self._known])
        rest = self._decode(self._window)[len(before) :]
        self._window, self._known = [], 0
        return rest
