"""Everything that is looked at, by subject. A new subject is a file with one function, and a line here."""

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


def examine() -> dict[str, list[Finding]]:
    """What every subject gives; a few seconds, most of them the sandbox's trial."""
    return {subject: look() for subject, look in SUBJECTS.items()}
