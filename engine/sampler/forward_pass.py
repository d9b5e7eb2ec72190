"""What a forward pass returns: logits, and the hidden states that a drafter asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Features:
    """What a drafter wants to see of the target's passes. ``hidden``: the hidden states that its output layer reads."""

    hidden: bool = False


NO_FEATURES = Features()


@dataclass(frozen=True)
class Pass:
    """``logits`` ``[T, V]`` and ``hidden`` ``[T, size]``, in line with each other, of the tokens that were asked for.

    ``hidden`` is None where nobody asked for it, and on a GPU, whose captured passes keep none.
    """

    logits: Tensor
    hidden: Tensor | None = None

    def repeated(self, rows: int) -> "Pass":
        """Of one token, the same for so many rows."""
        hidden = None if self.hidden is None else self.hidden.expand(rows, -1)
        return Pass(self.logits.expand(rows, -1), hidden)

    def of(self, tokens: Sequence[int]) -> "Pass":
        """Of some of the tokens, by index."""
        if list(tokens) == list(range(len(self.logits))):
            return self
        at = list(tokens)
        return Pass(self.logits[at], None if self.hidden is None else self.hidden[at])
