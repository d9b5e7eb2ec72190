"""A candidate's text as a Python module."""

import importlib.util
import sys
import types
from pathlib import Path

NAME = "solution"  # the module name of a candidate


def import_solution(path: Path, text: str) -> types.ModuleType:
    """The candidate as a module, its text written byte for byte. Raises whatever it raises."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[NAME] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
