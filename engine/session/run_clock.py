"""What the time is in a run: seconds since it began, while the engine counts from the beginning of each leg."""

import time
from collections.abc import Callable
from dataclasses import replace

from engine.contract import CandidateFinished, Event, TextAdded


class RunClock:
    """``clock`` gives seconds from wherever it likes. The run begins when this is made, unless ``begin`` is called."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._began_at = clock, clock()
        self._leg_began_s = 0.0
        self._search_began_s: float | None = None
        self._goes_on = False

    @property
    def now_s(self) -> float:
        return self._clock() - self._began_at

    @property
    def leg_s(self) -> float:
        """Since the part that the engine was asked for last."""
        return self.now_s - self._leg_began_s

    @property
    def search_s(self) -> float:
        """Of the search's budget; none while models are loaded for its beginning."""
        if self._search_began_s is None:
            return 0.0
        return self.now_s - self._search_began_s

    def begin(self, after_s: float = 0.0) -> None:
        """The run begins now, or stood at ``after_s`` when it ended."""
        self._began_at = self._clock() - after_s

    def begin_leg(self) -> None:
        self._leg_began_s = self.now_s

    def begin_search(self) -> None:
        self._search_began_s = self.now_s
        self.go_on()

    def go_on(self) -> None:
        """From now on the times of all legs are the run's, also when a search is over."""
        self._goes_on = True

    def shifted(self, event: Event) -> Event:
        """The event with the run's time for the leg's."""
        if self._goes_on and isinstance(event, TextAdded | CandidateFinished):
            return replace(event, at_s=event.at_s + self._leg_began_s)
        return event
