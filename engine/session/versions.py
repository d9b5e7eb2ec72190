"""What a run was made with, for whoever wants to make it again. Read from the packages' records, without imports."""

import functools
import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("bassline", "torch", "transformers")


@functools.cache
def versions() -> dict[str, str]:
    """Name -> version of Python and of the packages that decide what a model writes; absent ones are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            pass
    return found
