"""What this machine could not do for a model, found out when it was loaded; kept, so that ``doctor`` can show it."""

import json
import os
from pathlib import Path

from engine.session import paths


def keep(model: str, note: str) -> None:
    """``note``: one or two sentences, or empty where there is nothing to tell any more."""
    notes = kept()
    if notes.get(model, "") == note:
        return
    changed = {name: text for name, text in notes.items() if name != model} | ({model: note} if note else {})
    try:
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(changed), encoding="utf-8")
        part.replace(path)
    except OSError:
        pass  # a folder that cannot be written costs a line of the doctor's


def kept() -> dict[str, str]:
    """Notes by model."""
    try:
        found = json.loads(_path().read_text(encoding="utf-8"))
        return {str(name): str(note) for name, note in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _path() -> Path:
    return paths.data() / "notes.json"
