"""What rows begin with behind the shared prompt: tokens of their own, read together, a piece at a time, and each once.

Such tokens are an opening (a repair's: the answer, and what a test said to it), or what a row had said before memory
ran short.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.sampler.forward_pass import NO_FEATURES, Features, Pass
from engine.sampler.ragged_model import RaggedModel


@dataclass(frozen=True)
class Line:
    """What one row is fed: ``tokens``, at least one, at absolute positions from ``start``."""

    tokens: Sequence[int]
    start: int

    def piece(self, at: int, most: int) -> "Line":
        """Up to ``most`` tokens from index ``at``; a row that is through feeds its last one again, in the same slot."""
        first = min(at, len(self.tokens) - 1)
        return Line(self.tokens[first : first + max(1, most)], self.start + first)


def read_behind(
    model: RaggedModel,
    present: Sequence[Line],
    joining: Sequence[Sequence[int]],
    between_pieces: Callable[[], bool],
    features: Features = NO_FEATURES,
) -> Pass | None:
    """Fill the slabs behind those of the present rows with ``joining``, tokens that rows begin with.

    What several begin with is read once and copied, and what is known of it from an answer to this prompt is not read
    at all. ``present``: what other rows feed along, their last token at least, for a pass begins at the first slab.
    Returns the pass over each joining row's last token, ``[B, V]``; None if ``between_pieces`` said to stop.
    """
    before, start = len(present), model.prompt_length
    begins = [list(tokens) for tokens in joining]
    first = [begins.index(tokens) for tokens in begins]
    lines = list(present)
    for at, tokens in enumerate(begins):
        known = model.recollect(before + at, tokens) if first[at] == at else 0
        lines.append(Line(tokens[known:] if first[at] == at else tokens[:1], start + known))
    last = _read(model, lines, between_pieces, features)
    if last is None:
        return None
    model.tokens_read += sum(len(line.tokens) for at, line in enumerate(lines[before:]) if first[at] == at)
    for at in sorted(set(first)):
        if others := [before + other for other, same in enumerate(first) if same == at < other]:
            model.share(before + at, others, len(begins[at]))
    return last.of([before + at for at in first])


def _read(
    model: RaggedModel, lines: Sequence[Line], between_pieces: Callable[[], bool], features: Features
) -> Pass | None:
    """The pass over the last token of every line, after all before it, ``model.chunk`` tokens at a time."""
    done = [0] * len(lines)
    while True:
        pieces, left = list[Line](), model.chunk
        for line, at in zip(lines, done, strict=True):
            pieces.append(line.piece(at, left))
            left -= len(pieces[-1].tokens) - 1  # the one that every line is fed costs little
        tokens, starts = [piece.tokens for piece in pieces], [piece.start for piece in pieces]
        last = model.forward(tokens, starts, last_only=True, features=features)
        done = [piece.start - line.start + len(piece.tokens) for piece, line in zip(pieces, lines, strict=True)]
        if all(read == len(line.tokens) for read, line in zip(done, lines, strict=True)):
            return last
        if not between_pieces():
            return None
