"""Can a window open?"""

import ctypes
import importlib.util
import os
import sys

from engine.device import has_display
from engine.doctor.finding import BAD, GOOD, NOTE, WEAK, Finding

# What the PySide6 wheel expects of the system on Linux.
_LIBRARIES = ("libEGL.so.1", "libGL.so.1", "libxkbcommon-x11.so.0", "libxcb-cursor.so.0", "libdbus-1.so.3")
# Debian's packages that bring these and what else the xcb plugin loads; .ci/system-packages names the same.
_PACKAGES = (
    *("libegl1", "libgl1", "libxkbcommon0", "libxkbcommon-x11-0", "libxcb-cursor0", "libxcb-icccm4"),
    *("libxcb-keysyms1", "libxcb-shape0", "libdbus-1-3", "libfontconfig1", "fonts-dejavu-core"),
)


def display() -> list[Finding]:
    return [_screen(), _qt()]


def _screen() -> Finding:
    if not has_display():
        return Finding("screen", NOTE, "none; the command line does everything without one")
    names = [name for name in ("WAYLAND_DISPLAY", "DISPLAY", "QT_QPA_PLATFORM") if os.environ.get(name)]
    return Finding("screen", GOOD, ", ".join(f"{name}={os.environ[name]}" for name in names) or sys.platform)


def _qt() -> Finding:
    if importlib.util.find_spec("PySide6") is None:
        return Finding("Qt", WEAK, "not installed", "Install it: pip install PySide6-Essentials qasync.")
    if missing := missing_libraries():
        state = BAD if has_display() else WEAK
        text = f"the system lacks {', '.join(missing)}"
        return Finding("Qt", state, text, f"On Debian and Ubuntu: sudo apt-get install {' '.join(_PACKAGES)}.")
    return Finding("Qt", GOOD, "installed, with the system libraries it needs")


def missing_libraries() -> list[str]:
    """What Qt expects of the system and does not find."""
    return [name for name in _LIBRARIES if not _loads(name)] if sys.platform.startswith("linux") else []


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
