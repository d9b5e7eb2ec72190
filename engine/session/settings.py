"""The user's settings: one TOML file, written whole or not at all, shared by window and command line.

Keys that this release does not know stay in the file. An invalid value is ignored, with a sentence that says so, and a
file that cannot be read is set aside, never thrown away.
"""

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from engine.contract import BadRequest, Request, Sampling
from engine.contract.parameters import CANDIDATES
from engine.session import paths
from engine.session.export import save

THEMES = ("system", "light", "dark", "contrast")
FONT_SIZES = (8, 24)
PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")  # small letters count for more
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """``font_size`` in points, 0 for the system's. ``editor``: a command line, ``{file}`` in it is the file's path;
    empty for what the system opens such files with. ``folder``: where to save; ``proxy``: an address, empty for what
    the environment says. ``run_code`` False: no test ever runs.
    """

    theme: str = "system"
    font_size: int = 0
    editor: str = ""
    folder: str = ""
    proxy: str = ""
    history: bool = True
    run_code: bool = True
    candidates: int = Request.candidates
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        """Raises BadRequest with a sentence, as the parts of a request do."""
        if self.theme not in THEMES:
            raise BadRequest(f"Theme {self.theme!r} is not known; choose one of {', '.join(THEMES)}.")
        if self.font_size and not FONT_SIZES[0] <= self.font_size <= FONT_SIZES[1]:
            raise BadRequest(f"The font size must be 0 (the system's) or {FONT_SIZES[0]} to {FONT_SIZES[1]} points.")
        CANDIDATES.check(self.candidates)


@dataclass(frozen=True)
class LoadedSettings:
    """``notices``: a sentence for everything in the file that could not be used."""

    settings: Settings
    notices: tuple[str, ...] = ()


def settings_file() -> Path:
    return paths.settings() / "settings.toml"


def load(path: Path | None = None) -> LoadedSettings:
    """The settings in the file, and the defaults for all that it does not say. Never raises."""
    path = path or settings_file()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return LoadedSettings(Settings())
    except OSError as error:
        return LoadedSettings(
            Settings(), (f"The settings {path} cannot be read: {error.strerror}; the defaults are used.",)
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return LoadedSettings(Settings(), (_set_aside(path),))
    notices: list[str] = []
    sampling = values.get("sampling", {})
    known = _usable(Sampling, sampling if isinstance(sampling, dict) else {}, path, notices)
    known_settings = _usable(Settings, {**values, "sampling": Sampling(**known)}, path, notices)
    return LoadedSettings(Settings(**known_settings), tuple(notices))


def keep(settings: Settings, path: Path | None = None) -> Path:
    """Write the settings; what stands in the file besides stays. Raises CannotSave."""
    path = path or settings_file()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        values = {}
    before = values.get("sampling")
    sampling = {**(before if isinstance(before, dict) else {}), **vars(settings.sampling)}
    sampling["stop"] = list(settings.sampling.stop)
    return save(path, tomli_w.dumps({**values, **vars(settings), "sampling": sampling}), overwrite=True)


def use_proxy(proxy: str, otherwise: Mapping[str, str | None]) -> None:
    """From now on downloads of this process, and of those that it starts, go through ``proxy``.

    Empty: as ``otherwise`` has it, which is what the environment said of PROXY_VARIABLES before.
    """
    for name in PROXY_VARIABLES:
        if value := proxy or otherwise.get(name):
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


def _usable(kind: type[Settings] | type[Sampling], values: Values, path: Path, notices: list[str]) -> dict[str, Any]:
    """The values that a ``kind`` takes; a sentence for each that it does not."""
    usable: dict[str, Any] = {}
    standard = kind()
    for name in (part.name for part in fields(kind)):
        if name not in values:
            continue
        try:
            value = _as(type(getattr(standard, name)), values[name])
            kind(**{name: value})
        except (BadRequest, ValueError) as error:
            reason = str(error) if isinstance(error, BadRequest) else f"{values[name]!r} is no value for it."
            notices.append(f"{path.name}: {name} is passed over. {reason}")
        else:
            usable[name] = value
    return usable


def _as(kind: type, value: Any) -> Any:
    """``value`` if it is of ``kind``, as TOML writes such a thing. Raises ValueError."""
    if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if type(value) is kind:  # not isinstance: True is an int
        return value
    raise ValueError(value)


def _set_aside(path: Path) -> str:
    aside = path.with_name(f"{path.stem}-set-aside-{datetime.now():%Y-%m-%d-%H%M%S}{path.suffix}")
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"The settings {path} are no TOML and could not be set aside: {error.strerror}; the defaults are used."
    return f"The settings were no TOML; they were set aside as {aside.name}, and the defaults are used."
