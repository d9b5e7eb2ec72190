"""The versions and models that a run was made with, so that it can be reproduced."""

import functools
import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from engine.contract import ModelChoice, Ready

_PACKAGES = ("bassline", "torch", "transformers")


@functools.cache
def versions() -> dict[str, str]:
    """Name -> version of Python and of the packages that decide what a model writes; absent ones are left out.

    Read from the packages' records: nothing is imported.
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            pass
    return found


@dataclass(frozen=True)
class Provenance:
    """The models as they were asked for and as they were loaded, None where nobody knows; and the versions of then."""

    choice: ModelChoice | None = None
    ready: Ready | None = None
    versions: dict[str, str] = field(default_factory=versions)
