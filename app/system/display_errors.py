"""The display and Qt's platform plugin. Where no window can open, a sentence instead of a crash."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from app.system.leaving import leave
from engine.doctor.display import missing_libraries

_VARIABLE, _PLUGINS = "QT_QPA_PLATFORM", "QT_QPA_PLATFORM_PLUGIN_PATH"
_FOR_DISPLAYS = {"DISPLAY": "xcb", "WAYLAND_DISPLAY": "wayland"}


@contextlib.contextmanager
def failures_reported(no_window: Callable[[str], int]) -> Iterator[None]:
    """Make the QApplication in here. Where Qt finds no platform it ends the process by itself, with a crash dump; what
    it says on the way is heard instead, and the process ends with the exit code that ``no_window`` gives.
    """
    messages: list[str] = []

    def keep(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if kind == QtMsgType.QtFatalMsg:
            leave(no_window(reason("\n".join([*messages, message]), missing_libraries())))
        messages.append(message)

    _add_displays()
    qInstallMessageHandler(keep)
    try:
        yield
    finally:
        qInstallMessageHandler(None)
    for message in messages:
        sys.stderr.write(f"{message}\n")


def reason(messages: str, missing: Sequence[str] = ()) -> str:
    """Why no window can open: from what Qt ``messages`` before it gave up, and the libraries that are ``missing``.

    Qt names libxcb-cursor whatever the matter is, so a library counts only where it is seen to be missing.
    """
    chosen, folder = os.environ.get(_VARIABLE, ""), os.environ.get(_PLUGINS, "")
    named = [f"{name}={os.environ[name]}" for name in _FOR_DISPLAYS if os.environ.get(name)]
    if folder and "could not find the qt platform plugin" in messages.lower():
        return f"The window cannot open, because {_PLUGINS} is {folder}, where Qt finds nothing; unset it."
    if missing and "could not connect to display" not in messages:
        return f"The window cannot open, because the system lacks {', '.join(missing)}; install what is missing."
    if chosen and not any(chosen.startswith(platform) for platform in _FOR_DISPLAYS.values()):
        return f"The window cannot open, because {_VARIABLE} is {chosen}, and Qt does not start with it; unset it."
    if not named:
        return f"The window cannot open: {_VARIABLE} is {chosen}, and there is no such display here; unset it."
    return f"The window cannot open, because no display answers ({', '.join(named)}); log in at one, or use `ssh -X`."


def _add_displays() -> None:
    """A platform that another program's start left in the environment is tried first, and not the only one."""
    chosen = os.environ.get(_VARIABLE, "")
    others = [platform for name, platform in _FOR_DISPLAYS.items() if os.environ.get(name) and platform not in chosen]
    if chosen and others and sys.platform.startswith("linux") and not _has_no_display(chosen):
        os.environ[_VARIABLE] = ";".join([chosen, *others])


def _has_no_display(platform: str) -> bool:
    return platform.partition(":")[0] in ("offscreen", "minimal", "minimalegl", "vnc", "eglfs", "linuxfb")
