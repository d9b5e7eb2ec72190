"""Are the packages here that Bassline asks for, in the releases it allows?"""

import importlib.metadata
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement

from engine.child_process import ROOT
from engine.doctor.finding import BAD, GOOD, NOTE, WEAK, Finding, FindingState

_PROJECT = ROOT / "pyproject.toml"
# Extras that a user may want, and why; the others are for those who work on Bassline itself.
_EXTRAS = {"quantized": "only for int8 and int4 on a GPU"}
_OF_THE_WINDOW = ("PySide6-Essentials", "qasync")  # the command line does without


def packages() -> list[Finding]:
    return [_look(wanted, *_when_missing(wanted, extra)) for wanted, extra in _requirements()]


def _when_missing(wanted: Requirement, extra: str) -> tuple[FindingState, str]:
    """The state of what is not here, and the reason to have it."""
    if extra:
        return NOTE, _EXTRAS[extra]
    return (WEAK, "the window needs it") if wanted.name in _OF_THE_WINDOW else (BAD, "")


def _requirements() -> Iterator[tuple[Requirement, str]]:
    """Those that apply to this machine, each with its extra: empty for what every installation has."""
    for wanted, extras in _declared():
        for extra in ("", *_EXTRAS):
            if extra in extras and (wanted.marker is None or wanted.marker.evaluate({"extra": extra})):
                yield wanted, extra


def _declared() -> Iterator[tuple[Requirement, tuple[str, ...]]]:
    """Each requirement with the extras that may ask for it: a checkout's own file, or what the installation says."""
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
        for extra, lines in {"": project["dependencies"], **project["optional-dependencies"]}.items():
            yield from ((Requirement(line), (extra,)) for line in lines)
        return
    for line in importlib.metadata.requires("bassline") or ():
        wanted = Requirement(line)
        yield wanted, tuple(e for e in _EXTRAS if "extra ==" in str(wanted.marker)) or ("",)


def _look(wanted: Requirement, missing: FindingState, reason: str) -> Finding:
    """``missing``: the state when it is not here."""
    fix = f"Install it: pip install '{wanted.name}{wanted.specifier}'" + (f" ({reason})." if reason else ".")
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(wanted.name, missing, "not installed", fix)
    if not wanted.specifier.contains(version, prereleases=True):
        return Finding(wanted.name, WEAK, f"{version}, not one of {wanted.specifier}", fix)
    return Finding(wanted.name, GOOD, version)
