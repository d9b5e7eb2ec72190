"""Is a folder of config and safetensors whole? Read from the headers; nothing is loaded. No torch."""

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.models.errors import WrongFile
from engine.models.gguf_file import megabytes

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_ADAPTER = "adapter_config.json"
_OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.onnx", "*.npz", "*.tflite")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True)
class Stored:
    """A tensor as its file's header tells of it: ``dtype`` in the words of safetensors, such as ``F8_E4M3``."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


_POINTER = b"version https://git-lfs"
_BESIDE = ("config.json", "tokenizer.json", "tokenizer.model", "vocab.json")  # that people keep in Git LFS too


def check_weights_folder(folder: Path) -> list[Path]:
    """The weight files of ``folder``, each as long as its header says. Raises WrongFile with the first thing amiss."""
    if not (folder / "config.json").is_file():
        raise WrongFile(_without_config(folder))
    for name in _BESIDE:
        with suppress(FileNotFoundError):
            _refuse_pointer(folder / name)
    files = [folder / name for name in _names(folder)]
    for file in files:
        _check_length(file)
    return files


def stored_tensors(files: list[Path]) -> dict[str, Stored]:
    """Every tensor in whole safetensors files, by name."""
    return {
        name: Stored(file, tensor["dtype"], tuple(tensor["shape"]))
        for file in files
        for name, tensor in _header(file)[1].items()
    }


def _refuse_pointer(file: Path) -> None:
    """Raises WrongFile for what Git LFS leaves where it did not fetch, and OSError."""
    with file.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            raise WrongFile(
                f"{file.name} is a Git LFS pointer, a few lines of text in place of the file; "
                "run git lfs pull in its folder, or fetch the model again."
            )


def tensor_sizes(files: list[Path]) -> dict[str, int]:
    """Elements of every tensor in whole safetensors files, by name."""
    return {name: math.prod(tensor.shape) for name, tensor in stored_tensors(files).items()}


def read_json(file: Path) -> dict[str, Any]:
    """A JSON file that holds one object, as all files beside a model do. Raises WrongFile, which names it."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise WrongFile(f"{file} is no JSON that can be read, perhaps a part of it; fetch it again.") from None
    if not isinstance(read, dict):
        raise WrongFile(f"{file} holds no JSON object, so it is not the file it should be; fetch it again.")
    return read


def _names(folder: Path) -> list[str]:
    index, has_single = folder / _INDEX, (folder / _SINGLE).exists()  # a broken link is a file that is not there
    if not index.is_file():
        if not has_single and not (folder / _SINGLE).is_symlink():
            raise WrongFile(_without_weights(folder))
        return [_SINGLE]
    try:
        names = sorted({str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, AttributeError, TypeError):
        raise WrongFile(f"{index} is damaged; fetch it again.") from None
    if has_single and _SINGLE not in names:
        raise WrongFile(f"{folder} holds {_SINGLE} and {_INDEX}, which names other files; remove what does not belong.")
    return names


def _without_config(folder: Path) -> str:
    """What a folder without config.json holds instead, and what to do."""
    if (folder / _ADAPTER).is_file():
        return _is_adapter(folder)
    if (folder / "model_index.json").is_file():
        return f"{folder} holds a model that makes pictures; choose one that writes text."
    if (folder / "params.json").is_file():
        return (
            f"{folder} holds a model in its publisher's own format, with params.json in place of config.json; "
            "choose the version for transformers, or a GGUF."
        )
    if found := _first(folder, "*.gguf"):
        return f"{folder} holds no config.json; name the GGUF file itself: {found}."
    return f"{folder} holds no config.json; give a folder with config.json, tokenizer.json and safetensors."


def _without_weights(folder: Path) -> str:
    """What a folder with a config but without weights as they should be holds instead, and what to do."""
    if _first(folder, "model-*-of-*.safetensors"):
        return f"{folder} holds parts of a model, but not {_INDEX}, which says what is where; fetch that file too."
    if (folder / _ADAPTER).is_file():
        return _is_adapter(folder)
    if found := _first(folder, "*.safetensors"):
        return f"{folder} holds no {_SINGLE}; if {found} holds all of the model's weights, rename it to that."
    if found := _first(folder, "*.gguf"):
        return f"{folder} holds no {_SINGLE}; name the GGUF file itself: {found}."
    if found := next(filter(None, (_first(folder, pattern) for pattern in _OTHER_WEIGHTS)), ""):
        why = ", because loading such a file can run any program" if Path(found).suffix in _PICKLES else ""
        return (
            f"The weights in {folder} are in {found}, which Bassline does not read{why}; "
            "choose a version with safetensors, or a GGUF."
        )
    return f"{folder} holds no {_SINGLE}; the download is not complete."


def _is_adapter(folder: Path) -> str:
    try:
        base = read_json(folder / _ADAPTER).get("base_model_name_or_path")
    except WrongFile:
        base = None
    of = f" of {base}" if base else ""
    return (
        f"{folder} holds an adapter (LoRA), which only changes the weights{of}; "
        "merge it into that model, save the whole, and name that folder."
    )


def _first(folder: Path, pattern: str) -> str:
    return min((path.name for path in folder.glob(pattern)), default="")


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
        _refuse_pointer(file)
        with file.open("rb") as opened:
            start = opened.read(8)
            length = int.from_bytes(start, "little")
            header = json.loads(opened.read(length)) if 8 + length <= size else {}
    except OSError:
        raise WrongFile(f"{file.parent} holds no {file.name}; the download is not complete.") from None
    except ValueError:
        raise WrongFile(f"{file.name} is damaged; fetch it again.") from None
    header.pop("__metadata__", None)
    return length, header
