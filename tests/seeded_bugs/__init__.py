"""Does the suite catch what is easily got wrong? Plant one known bug at a time in a copy, and run its tests.

    python -m tests.seeded_bugs                   every bug
    python -m tests.seeded_bugs own-value mask    these
    python -m tests.seeded_bugs session           those of one area

Each bug is one line that somebody really might write. Its tests must pass without it and fail with it; those that the
tests had to be taught are marked. A module of this package that holds a tuple ``BUGS`` is an area, and is found by
itself.
"""

import importlib
import pkgutil

from tests.seeded_bugs.bug import Bug

__all__ = ["AREAS", "BUGS", "Bug"]


def _areas() -> dict[str, tuple[Bug, ...]]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "__main__")
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module.BUGS for name, module in modules.items() if hasattr(module, "BUGS")}


AREAS = _areas()
BUGS = tuple(bug for bugs in AREAS.values() for bug in bugs)
