"""Measures, in the tests' box, how long a test has waited for the candidate, which is all that its limit is about.

What the tests themselves take, such as a library's start, is not the candidate's to pay for. Only in a box of the
tests' own: where the candidate shares the process, the service's clock is the only one that counts.
"""

import threading
import time
from collections.abc import Callable

from engine.runner.split.tests import TestsLink

_LOOK_S = 0.05
_QUESTION_S = 0.001  # the pipe's and the two process switches' share of a question; 0.2 ms where nothing else runs


class Stopwatch:
    """``late`` is called, in a thread of its own, once for each test that waits longer than ``limit_s``."""

    def __init__(self, link: TestsLink, limit_s: float, late: Callable[[str], None]):
        self._link, self._limit_s, self._late = link, limit_s, late
        self._test, self._allowed_s = "", 0.0
        threading.Thread(target=self._watch, name="stopwatch", daemon=True).start()

    def start(self, test: str) -> None:
        self._test, self._allowed_s = "", self._paid_s() + self._limit_s
        self._test = test

    def stop(self) -> None:
        self._test = ""

    def _paid_s(self) -> float:
        """Seconds that the candidate itself has taken so far.

        For the other end of each message it is credited what this end took: both write, read and compare the same.
        """
        link = self._link
        return link.waited_s() - link.bookkeeping_s - _QUESTION_S * link.questions

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            test = self._test
            if test and self._paid_s() > self._allowed_s and test == self._test:
                self._test = ""
                self._late(test)
