"""Token ids that end a text, according to the files beside the weights. No torch."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.models.errors import WrongFile
from engine.models.folders import read_json

_GENERATION = "generation_config.json"


def declared_ends(folder: Path) -> frozenset[int]:
    """The ends that generation_config.json names, or else config.json. Defaults of transformers are nobody's word.

    Raises WrongFile for a file that cannot be read, or that names something else than ids.
    """
    for file in (folder / _GENERATION, folder / "config.json"):
        if file.is_file():
            declared = read_json(file)
            ends = declared.get("eos_token_id")
            if ends is None and isinstance(text := declared.get("text_config"), dict):
                ends = text.get("eos_token_id")
            if ends is not None:
                return _ids(file, ends)
    return frozenset()


def write_ends(folder: Path, ends: Iterable[int]) -> None:
    """Into a folder of our own, as transformers would write it."""
    (folder / _GENERATION).write_text(json.dumps({"eos_token_id": sorted(ends)}), encoding="utf-8")


def _ids(file: Path, ends: Any) -> frozenset[int]:
    listed = ends if isinstance(ends, list) else [ends]
    if not all(type(id_) is int for id_ in listed):
        raise WrongFile(f"{file} names {ends!r} as eos_token_id, which is no number of a token; fetch it again.")
    return frozenset(id_ for id_ in listed if id_ >= 0)
