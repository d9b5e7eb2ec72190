"""Is a folder of config and safetensors whole? Read from the headers; nothing is loaded. No torch."""

import json
import math
from pathlib import Path
from typing import Any

from engine.models.errors import WrongFile
from engine.models.gguf_file import megabytes

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


def check_weights_folder(folder: Path) -> list[Path]:
    """The weight files of ``folder``, each as long as its header says. Raises WrongFile with the first thing amiss."""
    if not (folder / "config.json").is_file():
        raise WrongFile(
            f"{folder} holds no config.json; give a folder with config.json, tokenizer.json and safetensors."
        )
    files = [folder / name for name in _names(folder)]
    for file in files:
        _check_length(file)
    return files


def _names(folder: Path) -> list[str]:
    index = folder / _INDEX
    if not index.is_file():
        return [_SINGLE]
    try:
        return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError):
        raise WrongFile(f"{index} is damaged; fetch it again.") from None


def tensor_sizes(files: list[Path]) -> dict[str, int]:
    """Elements of every tensor in whole safetensors files, by name."""
    sizes: dict[str, int] = {}
    for file in files:
        for name, tensor in _header(file)[1].items():
            sizes[name] = math.prod(tensor["shape"])
    return sizes


def _check_length(file: Path) -> None:
    """A safetensors file begins with the length of its JSON header; the header ends with the last tensor's end."""
    length, header = _header(file)
    size = file.stat().st_size
    if not header:
        raise WrongFile(f"{file.name} is cut off within its header, at {size} bytes; fetch it again.")
    expected = 8 + length + max(tensor["data_offsets"][1] for tensor in header.values())
    if size < expected:
        raise WrongFile(f"{file.name} is incomplete: {megabytes(size)} of {megabytes(expected)} MB; fetch it again.")


def _header(file: Path) -> tuple[int, dict[str, Any]]:
    """The header's length and what it says of each tensor; nothing when it is cut off."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            start = opened.read(8)
            if start + opened.read(15) == b"version https://git-lfs":
                raise WrongFile(f"{file.name} is a Git LFS pointer, a few lines of text in place of the weights.")
            opened.seek(8)
            length = int.from_bytes(start, "little")
            header = json.loads(opened.read(length)) if 8 + length <= size else {}
    except OSError:
        raise WrongFile(f"{file.parent} holds no {file.name}; the download is not complete.") from None
    except ValueError:
        raise WrongFile(f"{file.name} is damaged; fetch it again.") from None
    header.pop("__metadata__", None)
    return length, header
