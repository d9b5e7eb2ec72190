"""The command that starts this program again: for the user's shell, and for a menu entry."""

import os
import shlex
import sys
from pathlib import Path


def command() -> list[str]:
    """The words that start it from any folder: absolute, and not resolved, so that they outlive an upgrade."""
    main = sys.modules["__main__"]
    if (spec := getattr(main, "__spec__", None)) is not None:  # python -m bassline
        return [sys.executable, "-m", (spec.parent or spec.name)]
    program = os.path.abspath(sys.argv[0])
    is_script = program.endswith((".py", ".pyw")) or not os.access(program, os.X_OK)
    return [sys.executable, program] if is_script else [program]


def shell_name() -> str:
    """The same for a sentence, to be copied into the shell at hand: relative where it lies below the current folder."""
    return shlex.join(_short(word) for word in command())


def _short(word: str) -> str:
    path = Path(word)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else word
