"""Are the packages here that pyproject.toml asks for, in the releases it allows?"""

import importlib.metadata
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from engine.doctor.finding import BAD, GOOD, NOTE, WEAK, Finding

_PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
# What one misses without an extra: its state, and the reason to have it.
_EXTRAS = {"app": (WEAK, "the window needs it"), "quantized": (NOTE, "only for int8 and int4 on a GPU")}


def packages() -> list[Finding]:
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    found = [_look(Requirement(line), BAD, "") for line in _that_apply(project["dependencies"])]
    for extra, (state, reason) in _EXTRAS.items():
        lines = project["optional-dependencies"].get(extra, [])
        found += [_look(Requirement(line), state, reason) for line in _that_apply(lines)]
    return found


def _that_apply(lines: list[str]) -> Iterator[str]:
    for line in lines:
        marker = Requirement(line).marker
        if marker is None or marker.evaluate():
            yield line


def _look(wanted: Requirement, missing: str, reason: str) -> Finding:
    """``missing``: the state when it is not here."""
    fix = f"Install it: pip install '{wanted.name}{wanted.specifier}'" + (f" ({reason})." if reason else ".")
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(wanted.name, missing, "not installed", fix)
    if not wanted.specifier.contains(version, prereleases=True):
        return Finding(wanted.name, WEAK, f"{version}, not one of {wanted.specifier}", fix)
    return Finding(wanted.name, GOOD, version)
