"""How a GPU's cache is cut: fixed room in powers of two, and the lines of tokens that graphs are captured for.

The sampler makes it (``sampler/fixed_cache.py``), and the memory plan counts it: one set of numbers for both. No torch.
"""

from dataclasses import dataclass

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)  # tokens of a line that has a graph
TOKENS_PER_ROW = 17  # of the longest line that is captured from the first: 16 drafts, and the token before them


def power_of_two(count: int) -> int:
    """The least power of two that is no less than ``count``."""
    return 1 << max(0, count - 1).bit_length()


def bucket(tokens: int) -> int | None:
    """The smallest line with a graph that holds so many tokens; None: so long that launches do not matter."""
    return next((size for size in SIZES if size >= tokens), None)


@dataclass(frozen=True)
class Room:
    """Rows, slots per row, and tokens of prompt that fit. Powers of two, so that it seldom has to grow."""

    rows: int
    slots: int
    prompt: int

    @classmethod
    def holding(cls, rows: int, slots: int, prompt: int) -> "Room":
        """The smallest that holds so much."""
        return cls(power_of_two(rows), power_of_two(slots), power_of_two(prompt))

    def grown(self, rows: int = 0, slots: int = 0, prompt: int = 0) -> "Room":
        """This room, or the next larger one that holds so much."""
        return Room(_power(rows, self.rows), _power(slots, self.slots), _power(prompt, self.prompt))

    @property
    def tokens(self) -> int:
        """Keys and values that are kept, in tokens: each row has one slot more, where padding goes."""
        return self.rows * (self.slots + 1) + self.prompt

    @property
    def lines(self) -> tuple[int, ...]:
        """Tokens of the lines that are captured for it, the largest first."""
        largest = bucket(min(self.rows * TOKENS_PER_ROW, SIZES[-1])) or SIZES[-1]
        return tuple(size for size in reversed(SIZES) if size <= largest)


def _power(wanted: int, have: int) -> int:
    return have if wanted <= have else power_of_two(wanted)
