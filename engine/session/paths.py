"""Where Bassline keeps its files: all under ``BASSLINE_HOME`` when that is set, else in the platform's usual places."""

import os
from pathlib import Path

import platformdirs

_APP = "bassline"


def _home() -> Path | None:
    home = os.environ.get("BASSLINE_HOME", "")
    return Path(home).expanduser().absolute() if home else None


def models() -> Path:
    """Downloaded and converted models: large, and safe to delete."""
    home = _home()
    return home / "models" if home else platformdirs.user_cache_path(_APP, appauthor=False) / "models"


def settings() -> Path:
    """Small files that a person would miss."""
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
