"""One bug that could be in the program."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """``right`` stands in ``file`` exactly once; ``tests``: what is run, as pytest is told it.

    Some of them have to fail once ``right`` reads ``wrong``. ``taught``: the tests that stood beside ``file`` when the
    bug was first planted did not notice it, and were taught to.
    """

    name: str
    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    taught: bool = False
