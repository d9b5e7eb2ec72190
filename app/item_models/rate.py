"""Tokens per second: over the last two seconds while it runs, the average when it has ended."""

from collections import deque

WINDOW_S = 2.0


class Rate:
    """Fed with totals; times are the engine's, so a hand-driven clock gives exact numbers."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def add(self, at_s: float, tokens: int) -> None:
        self._points.append((at_s, tokens))
        while len(self._points) > 2 and self._points[1][0] <= at_s - WINDOW_S:
            self._points.popleft()

    @property
    def per_second(self) -> float | None:
        """None until there are two moments to compare."""
        if len(self._points) < 2:
            return None
        (first_s, first), (last_s, last) = self._points[0], self._points[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None


def average(tokens: int, started_s: float | None, ended_s: float | None) -> float | None:
    """Tokens over the time from the first of them to the end."""
    if started_s is None or ended_s is None or ended_s <= started_s or tokens < 2:
        return None
    return (tokens - 1) / (ended_s - started_s)
