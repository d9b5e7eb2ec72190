"""A tiny model's folder made into another one: other tensors, another config; and read in both precisions."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from engine.models import conversion_process
from engine.models.checkpoint import open_checkpoint
from engine.models.conversion import WEIGHTS
from engine.models.weights import load_int8

Tensors = dict[str, torch.Tensor]
IDS = torch.arange(3, 60)[None]


class Silent:
    """A reporter of nothing."""

    def progress(self, *_: object) -> None:
        pass


def rewrite(folder: Path, change: Callable[[Tensors], Tensors] = dict, **config: object) -> Path:
    """Change the tensors of ``folder`` and set what ``config`` says; None takes an entry out."""
    weights = folder / "model.safetensors"
    save_file({name: t.contiguous() for name, t in change(load_file(weights)).items()}, weights, {"format": "pt"})
    said = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps({key: value for key, value in said.items() if value is not None}))
    return folder


def without(*ends: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: t for name, t in tensors.items() if not name.endswith(ends)}


def under(rename: Callable[[str], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {rename(name): tensor for name, tensor in tensors.items()}


def float_logits(folder: Path) -> torch.Tensor:
    with torch.inference_mode():
        return open_checkpoint(folder).load(torch.float32)(IDS).logits[0]


def int8_logits(folder: Path) -> torch.Tensor:
    converted = folder.with_name(f"{folder.name}-int8")
    converted.mkdir()
    conversion_process._convert_folder(folder, converted, "int8", Silent())
    with torch.inference_mode():
        return load_int8(converted, converted / WEIGHTS)(IDS).logits[0]


def far(got: torch.Tensor, want: torch.Tensor) -> float:
    return ((got - want).norm() / want.norm()).item()
