"""One finding of the doctor: a subject, its state, and advice."""

from dataclasses import dataclass

GOOD, WEAK, BAD, NOTE = "good", "weak", "bad", "note"


@dataclass(frozen=True)
class Finding:
    """``state``: good; weak (works, but less well than it could); bad (something does not work); note (neither).

    ``text`` is what was found; ``advice`` what to do about it, empty where there is nothing to do.
    """

    name: str
    state: str
    text: str
    advice: str = ""
