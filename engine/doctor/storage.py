"""Where models lie, how much room they take and have, and where new ones come from."""

import os
import shutil
from pathlib import Path

from engine.doctor.finding import BAD, GOOD, NOTE, WEAK, Finding
from engine.models import found, hub, library
from engine.session import paths

_LITTLE = 4_000_000_000  # bytes: Qwen2.5-Coder 1.5B, the larger default on a CPU, with its converted copy


def storage() -> list[Finding]:
    return [_folder(), _room(), _kept(), *_others(), _hub()]


def _folder() -> Finding:
    folder = paths.models()
    if os.access(_existing(folder), os.W_OK):
        return Finding("folder", GOOD, str(folder))
    return Finding(
        "folder", BAD, f"{folder} cannot be written", "Set BASSLINE_HOME to a folder of yours, or change its owner."
    )


def _room() -> Finding:
    free = shutil.disk_usage(_existing(paths.models())).free
    text = f"{_gb(free)} free on its disk"
    if free < _LITTLE:
        return Finding("room", WEAK, text, "Make room: `models list` shows what is here, `models remove` frees it.")
    return Finding("room", GOOD, text)


def _kept() -> Finding:
    rows = [row for row in library.listed() if row.original_bytes or row.converted_bytes]
    if not rows:
        return Finding("here", NOTE, "no model yet", "Fetch the default one: `bassline models fetch`.")
    published, converted = sum(row.original_bytes for row in rows), sum(row.converted_bytes for row in rows)
    names = ", ".join(row.title for row in rows if row.source == "Catalog") or f"{len(rows)} models"
    text = f"{names}: {_gb(published)} as published, {_gb(converted)} converted"
    twice = [row for row in rows if row.source == "Catalog" and row.original_bytes and row.converted_bytes]
    advice = f"`models remove {twice[0].name} --original` frees what a converted copy replaces." if twice else ""
    return Finding("here", GOOD, text, advice)


def _others() -> list[Finding]:
    files, repositories = found.found_files(), found.found_repositories()
    programs = sorted({file.program for file in files})
    texts = [f"{sum(file.program == program for file in files)} from {program}" for program in programs]
    texts += [f"{len(repositories)} in the hub's cache"] if repositories else []
    return [Finding("other programs'", NOTE, ", ".join(texts))] if texts else []


def _hub() -> Finding:
    if hub.reachable():
        return Finding("hub", GOOD, "answers")
    return Finding(
        "hub",
        WEAK,
        "does not answer; models with a mirror on the package index can still be fetched",
        "Check the connection, the proxy variables (HTTPS_PROXY) and HF_HUB_OFFLINE.",
    )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there already."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
