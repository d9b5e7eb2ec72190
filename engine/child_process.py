"""Child processes of Bassline's own: ``python -m engine...`` finds the same program, however it was installed."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # holds app, engine, kernels, resources: a checkout, or an installed package


def environment(root: Path = ROOT) -> dict[str, str]:
    """The variables for a child that runs a module below ``root``.

    An interpreter that ignores Python's variables and the user's own packages (``python -I``) has children that do.
    """
    own = {name: value for name, value in os.environ.items() if not (_isolated() and name.startswith("PYTHON"))}
    places = [str(root), *filter(None, [own.get("PYTHONPATH", "")])]
    quiet = {"PYTHONNOUSERSITE": "1"} if sys.flags.no_user_site else {}
    return own | quiet | {"PYTHONPATH": os.pathsep.join(places)}


def _isolated() -> bool:
    return bool(sys.flags.ignore_environment)
