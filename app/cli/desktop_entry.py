"""``desktop-entry``: Bassline in the menus of a Linux desktop, by the XDG specifications, for this user alone."""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any

from app.invocation import command as own_command
from engine.child_process import ROOT
from engine.contract import BasslineError
from engine.session.export import save

_MARK = "bassline desktop-entry install"  # in both files: what we wrote, and may write over or remove
_ENTRY = """\
# Written by: {mark}
[Desktop Entry]
Type=Application
Version=1.5
Name=Bassline
GenericName=Code generator
Comment=Several answers to one coding prompt from a local model; your tests pick
Exec={exec}
Icon=bassline
Terminal=false
Categories=Development;
Keywords=code;model;tests;candidates;
StartupNotify=true
StartupWMClass=bassline
"""
_ICON = ROOT / "resources" / "desktop" / "bassline.svg"


class NotOurs(BasslineError):
    """A file of that name is there that Bassline did not write."""


class NoMenus(BasslineError):
    """This system's menus do not work that way."""


def add_desktop_entry(commands: "argparse._SubParsersAction[Any]") -> None:
    command = commands.add_parser(
        "desktop-entry",
        help="add Bassline to the menus of a Linux desktop, or remove it",
        description="Menu entry and icon, below XDG_DATA_HOME (~/.local/share), for you alone. Linux.",
        allow_abbrev=False,
    )
    command.add_argument("what", choices=("install", "remove"), help="both can be repeated without harm")


def desktop_entry(arguments: argparse.Namespace) -> int:
    """Raises NoMenus away from Linux, and NotOurs where another program's file has the name."""
    if not sys.platform.startswith("linux"):
        raise NoMenus("Menu entries of this kind are for Linux desktops; nothing was changed.")
    if arguments.what == "install":
        install(own_command())
    else:
        remove()
    return 0


def files() -> tuple[Path, Path]:
    """Where the entry and the icon belong."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    data = named if named.is_absolute() else Path.home() / ".local" / "share"  # the specification ignores others
    return data / "applications" / "bassline.desktop", data / "icons/hicolor/scalable/apps/bassline.svg"


def install(program: list[str]) -> None:
    """``program``: the words that open the window."""
    entry, icon = files()
    for path in (entry, icon):
        _check_ours(path)
    texts = {entry: _ENTRY.format(mark=_MARK, exec=exec_line(program)), icon: _ICON.read_text(encoding="utf-8")}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
            save(path, text, overwrite=True)
        print(path)


def remove() -> None:
    for path in files():
        if os.path.lexists(path):
            _check_ours(path)
            path.unlink()
            print(f"removed {path}")


def _check_ours(path: Path) -> None:
    ours = path.is_file() and _MARK in path.read_text(encoding="utf-8", errors="replace")
    if os.path.lexists(path) and not ours:
        raise NotOurs(f"{path} was not written by Bassline; move it away, then try again. Nothing was changed.")


def exec_line(program: list[str]) -> str:
    """The words in the quoting of the Desktop Entry Specification: first as an argument, then as a string value."""
    return " ".join(_quoted(word) for word in program)


def _quoted(word: str) -> str:
    word = word.replace("%", "%%")
    if re.fullmatch(r"[\w@+:,./%=-]+", word, re.ASCII):
        return word
    return '"' + re.sub(r'(["`$\\])', r"\\\1", word).replace("\\", "\\\\") + '"'
