"""What drafting costs here, measured while it is done."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

MEMORY = 8  # calls


class DraftTimer:
    """``seconds`` of one unit of drafting, lately: of a call, or of a token; 0 before the first."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def measuring(self, units: int = 1) -> Iterator[None]:
        """A piece of work of so many units; none means that nothing was done."""
        start = time.perf_counter()
        yield
        if units > 0:
            self.learn((time.perf_counter() - start) / units)

    def learn(self, seconds: float) -> None:
        self.seconds += (seconds - self.seconds) / (MEMORY if self.seconds else 1)
