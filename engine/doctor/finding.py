"""One finding of the doctor: a subject, its state, and advice."""

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """The values stand in ``doctor --json``."""

    GOOD = "good"
    WEAK = "weak"  # it works, but less well than it could
    BAD = "bad"  # something does not work
    NOTE = "note"  # neither


GOOD, WEAK, BAD, NOTE = FindingState
MARKS = {GOOD: "ok", WEAK: "weak", BAD: "BAD", NOTE: ""}  # as the command line has them


@dataclass(frozen=True)
class Finding:
    """``text`` is what was found; ``advice`` what to do about it, empty where there is nothing to do."""

    name: str
    state: FindingState
    text: str
    advice: str = ""
