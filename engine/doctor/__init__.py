"""What this machine has and lacks for Bassline, and what to do about each weakness. No torch, no Qt.

A subject is a file with one function that gives its findings; a new one is named below.
"""

from collections.abc import Callable

from engine.doctor.display import display
from engine.doctor.finding import Finding
from engine.doctor.machine import machine
from engine.doctor.packages import packages
from engine.doctor.protection import protection
from engine.doctor.storage import storage

SUBJECTS: dict[str, Callable[[], list[Finding]]] = {
    "Machine": machine,
    "Packages": packages,
    "Protection": protection,
    "Models": storage,
    "Display": display,
}

__all__ = ["SUBJECTS", "Finding", "examine"]


def examine() -> dict[str, list[Finding]]:
    """Everything, by subject; a few seconds, most of them the sandbox's trial."""
    return {subject: look() for subject, look in SUBJECTS.items()}
