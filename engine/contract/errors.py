"""Errors a user can act on. Each kind is raised where the fact is known and shown where the user is."""

from collections.abc import Mapping


class BasslineError(Exception):
    """An error whose text is one sentence that says what to do."""


def by_candidate(faults: Mapping[int, BasslineError]) -> list[str]:
    """What befell single candidates, each sentence once, in the order of their numbers."""
    numbers: dict[str, list[str]] = {}
    for number, fault in sorted(faults.items()):
        numbers.setdefault(str(fault), []).append(str(number))
    return [f"Candidate {', '.join(those)}: {sentence}" for sentence, those in numbers.items()]


class BadRequest(BasslineError):
    """The request asks for something that cannot be; nothing was started."""


class LoadCancelled(BasslineError):
    """The user stopped a load; nothing half-made is left behind."""
