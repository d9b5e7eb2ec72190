"""Where Bassline keeps its files: all under ``BASSLINE_HOME`` when that is set, else in the platform's usual places."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

import platformdirs

from engine.contract import BasslineError

_APP = "bassline"


class NoHome(BasslineError):
    """There is no folder to keep anything in."""


def ensure_home() -> None:
    """See to it that the user has a home folder; call this before anything asks for one.

    In a container under a number that no user has, and in some services, there is neither HOME nor an entry that names
    a folder. BASSLINE_HOME or a private folder among the temporary files stands in, also for the libraries that we use
    and the programs that we start. Raises NoHome.
    """
    if os.name != "posix" or os.path.isabs(os.environ.get("HOME", "")):
        return
    os.environ.pop("HOME", None)  # empty or relative: no place at all
    if not os.path.isabs(os.path.expanduser("~")):
        os.environ["HOME"] = str(_home() or _private_folder(f"{_APP}-{os.getuid()}"))


def _private_folder(name: str) -> Path:
    """Among the temporary files, made if need be. Raises NoHome if others can have put anything into it."""
    with contextlib.suppress(OSError):
        folder = Path(tempfile.gettempdir()) / name
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return folder
    raise NoHome("You have no home folder here; set HOME or BASSLINE_HOME to a folder in which you may write.")


def _home() -> Path | None:
    home = os.environ.get("BASSLINE_HOME", "")
    try:
        return Path(home).expanduser().absolute() if home else None
    except RuntimeError:
        raise NoHome(f"BASSLINE_HOME is {home}, and there is no such user; write the whole path.") from None


def models() -> Path:
    """Downloaded and converted models: large, and safe to delete."""
    home = _home()
    return home / "models" if home else platformdirs.user_cache_path(_APP, appauthor=False) / "models"


def settings() -> Path:
    """Small files that a user would miss."""
    home = _home()
    return home / "settings" if home else platformdirs.user_config_path(_APP, appauthor=False)


def data() -> Path:
    """Runs, journals and measurements."""
    home = _home()
    return home / "data" if home else platformdirs.user_data_path(_APP, appauthor=False)


def logs() -> Path:
    """Logs and crash reports."""
    home = _home()
    return home / "logs" if home else platformdirs.user_log_path(_APP, appauthor=False)
