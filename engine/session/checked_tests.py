"""A user's tests, read once: how they are written, or why they cannot be used."""

import functools
import warnings
from dataclasses import dataclass

from engine.runner import forms

TOO_DEEP = "Your tests are nested too deeply."


@dataclass(frozen=True)
class CheckedTests:
    """``source`` is None where ``objection``, a sentence, says why the tests cannot be used."""

    source: forms.TestSource | None
    objection: str = ""


@functools.lru_cache(maxsize=4)  # a run asks at every hand-over, and a text may be megabytes long
def check(tests: str) -> CheckedTests:
    """Never raises. No line of the tests is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's tests
            return CheckedTests(forms.parse(tests))
    except forms.BrokenTests as error:
        return CheckedTests(None, str(error))
    except RecursionError:
        return CheckedTests(None, TOO_DEEP)
