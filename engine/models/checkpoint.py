"""A folder's weights as the module expects them: under its names, dequantised, and complete."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from engine.models.causal_lm import CausalLM
from engine.models.completeness import check_missing, check_shapes, check_unexpected
from engine.models.errors import UnsupportedModel
from engine.models.folders import Stored, check_weights_folder, read_json, stored_tensors
from engine.models.kinds import encoder, encoder_decoder
from engine.models.names_in_files import renamed
from engine.models.quantization import Scales, scales_of
from engine.models.skeleton import drop_strange_padding, empty_model, from_folder_errors, ties_of

_ROWS = 4096  # of an embedding compared at a time


@dataclass(frozen=True)
class Checkpoint:
    """``model`` is the module without weights, ``names`` its names by the stored ones.

    A head that the files hold for themselves is the model's head, whatever the config says of tying; ``config`` then
    says so too.
    """

    folder: Path
    config: PretrainedConfig
    stored: Mapping[str, Stored]
    scales: Scales
    model: CausalLM
    names: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def wanted(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all that the model keeps."""
        return {name: tuple(tensor.shape) for name, tensor in self.model.state_dict().items()}

    @property
    def is_exact(self) -> bool:
        """Whether the files hold every weight under the model's name; if not, transformers may know how to convert."""
        return not self.scales.delegated and not missing_of(self.model, set(self.names.values()))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every weight that is stored, one at a time, as floats; none that is only quantised with another's help."""
        files = {path: safe_open(path, framework="pt") for path in {tensor.file for tensor in self.stored.values()}}

        def read(name: str) -> Tensor:
            tensor: Tensor = files[self.stored[name].file].get_tensor(name)
            return tensor

        for stored, name in self.names.items():
            yield name, self._whole(stored, read)

    def exact_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Those that the model keeps; what is stored under the tied name alone comes under the other's.

        Raises the errors of ``completeness``.
        """
        given = {name: self.stored[stored].shape for stored, name in self.names.items()}
        check_shapes(self.name, given, self.wanted)
        self.check(set(), set(given) - self.wanted.keys())
        swapped = {target: source for target, source in ties_of(self.model).items() if source not in given}
        for name, tensor in self.tensors():
            if name in self.wanted:
                yield swapped.get(name, name), tensor

    def check(self, missing: set[str], unexpected: set[str]) -> None:
        """Raises the errors of ``completeness``."""
        ignored = getattr(self.model, "_keys_to_ignore_on_load_unexpected", None) or ()
        left = {key for key in unexpected if not any(re.search(pattern, key) for pattern in ignored)}
        left -= {self.names.get(helper, helper) for helper in self.scales.helpers}
        check_missing(self.name, missing, list(self.stored))
        check_unexpected(self.name, left, self.wanted, (name for name, _ in self.model.named_modules()))

    def load(self, dtype: torch.dtype | str, *, spread: bool = False) -> CausalLM:
        """The module with its weights, on the CPU or ``spread`` over all GPUs; ``dtype`` may be "auto".

        Raises the errors of ``completeness``, and UnsupportedModel for what transformers cannot load.
        """
        how: dict[str, Any] = {
            "config": self.config,
            "dtype": dtype,
            "attn_implementation": "eager",
            "device_map": "auto" if spread else None,
            "output_loading_info": True,
            "ignore_mismatched_sizes": True,  # they are told below, with the names
        }
        with from_folder_errors(self.folder):
            if self.scales.scale or any(stored != name for stored, name in self.names.items()):
                how |= {"config": self.model.config, "state_dict": dict(self.tensors())}
                kind: Any = type(self.model)
                model, info = kind.from_pretrained(None, **how)
            else:
                how |= {"local_files_only": True, "trust_remote_code": False}
                model, info = AutoModelForCausalLM.from_pretrained(self.folder, **how)
        mismatched = {key: tuple(got) for key, got, _ in info["mismatched_keys"]}
        check_shapes(self.name, mismatched, {key: tuple(want) for key, _, want in info["mismatched_keys"]})
        self.check(set(info["missing_keys"]), set(info["unexpected_keys"]))
        loaded: CausalLM = model
        return loaded

    def _whole(self, stored: str, read: Callable[[str], Tensor]) -> Tensor:
        tensor = read(stored)
        if stored not in self.scales.scale:
            return tensor.float() if tensor.is_floating_point() and tensor.dtype.itemsize == 1 else tensor
        zero = read(self.scales.zero[stored]) if stored in self.scales.zero else None
        try:
            return dequantised(tensor, read(self.scales.scale[stored]), zero, self.scales.block)
        except ValueError as error:
            raise UnsupportedModel(
                f"{self.name} is quantised, and the scale of {stored} does not fit it ({error}); "
                "choose a GGUF of it, or the version that is not quantised."
            ) from None


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read what the headers and the config of ``folder`` say, and match them.

    Raises WrongFile, and UnsupportedModel for kinds of models and of weights that cannot be run.
    """
    stored = stored_tensors(check_weights_folder(folder))
    raw = read_json(folder / "config.json")
    scales = scales_of(folder.name, raw, stored)
    config = _config(folder, scales)
    _check_kind(folder.name, config)
    with from_folder_errors(folder):
        model = empty_model(config)
    if model.config.get_text_config() is not model.config:
        raise UnsupportedModel(
            f"{folder.name} is a {config.model_type} model, which takes pictures or sound too, and Bassline runs "
            "models for text alone; choose the version for text, or another model."
        )
    helpers = scales.helpers
    names = renamed(
        [name for name in stored if name not in helpers],
        lambda given: missing_of(model, given),
        model.state_dict().keys(),
        getattr(model, "base_model_prefix", ""),
    )
    checkpoint = Checkpoint(folder, config, stored, scales, model, names)
    _settle_ties(checkpoint)
    return checkpoint


def missing_of(model: nn.Module, given: set[str]) -> set[str]:
    """What ``model`` keeps that is neither among ``given`` nor tied to what is."""
    missing = set(model.state_dict()) - given
    for target, source in ties_of(model).items():
        if not {target, source} <= missing:
            missing -= {target, source}
    return missing


def dequantised(weight: Tensor, scale: Tensor, zero: Tensor | None, block: tuple[int, int] | None) -> Tensor:
    """``(weight - zero) * scale`` in float32, for weights ``[..., N, K]`` and scales for all, by row or by block.

    Raises ValueError where the scale's shape says none of these.
    """
    whole = weight.float()
    if zero is not None:
        whole = whole - _spread(zero, weight.shape, block)
    return whole * _spread(scale, weight.shape, block)


def _spread(scale: Tensor, shape: torch.Size, block: tuple[int, int] | None) -> Tensor:
    """``scale`` in a shape that multiplies with ``shape``: one number for all, for each expert, row or block."""
    if scale.dtype == torch.uint8:
        raise ValueError("its numbers are packed")
    scale = scale.float()
    if scale.numel() == 1:
        return scale.reshape(())
    rows, columns = shape[-2:]
    front = shape[:-2]
    if front and scale.numel() == front.numel():
        return scale.reshape(*front, 1, 1)
    if scale.shape == (*front, rows):
        return scale[..., None]
    if scale.shape[:-2] != front or scale.dim() != len(shape):
        raise ValueError(f"{tuple(scale.shape)} for {tuple(shape)}")
    down, across = scale.shape[-2:]
    if block is not None and (down, across) == (-(-rows // block[0]), -(-columns // block[1])):
        height, width = block
    elif rows % down == 0 and columns % across == 0:
        height, width = rows // down, columns // across
    else:
        raise ValueError(f"{tuple(scale.shape)} for {tuple(shape)}")
    return scale.repeat_interleave(height, -2)[..., :rows, :].repeat_interleave(width, -1)[..., :columns]


def _config(folder: Path, scales: Scales) -> PretrainedConfig:
    """The config, without what it says of quantisation, and without a padding id that no embedding has."""
    with from_folder_errors(folder):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    parts = {id(part): part for part in (config, config.get_text_config())}.values()
    for part in parts:
        for name in ("quantization_config", "compression_config"):
            if not scales.delegated and getattr(part, name, None) is not None:
                delattr(part, name)
        drop_strange_padding(part)
    if scales.delegated and isinstance(declared := getattr(config, "quantization_config", None), dict):
        declared["dequantize"] = True
    return config


def _check_kind(name: str, config: PretrainedConfig) -> None:
    """What a config says only once its defaults are filled in."""
    if getattr(config, "is_encoder_decoder", False):
        raise encoder_decoder(name, config.model_type)
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False):
        raise encoder(name, config.model_type)


def _settle_ties(checkpoint: Checkpoint) -> None:
    """Where the files hold two tied weights that differ, each is used for what it is called."""
    by_name = {name: stored for stored, name in checkpoint.names.items()}
    for target, source in ties_of(checkpoint.model).items():
        if target in by_name and source in by_name and not _are_equal(checkpoint, by_name[target], by_name[source]):
            for config in (checkpoint.config, checkpoint.model.config):
                config.tie_word_embeddings = False
                config.get_text_config().tie_word_embeddings = False


def _are_equal(checkpoint: Checkpoint, one: str, other: str) -> bool:
    a, b = checkpoint.stored[one], checkpoint.stored[other]
    if (a.dtype, a.shape) != (b.dtype, b.shape) or one in checkpoint.scales.scale:
        return False
    with safe_open(a.file, framework="pt") as first, safe_open(b.file, framework="pt") as second:
        mine, theirs = first.get_slice(one), second.get_slice(other)
        steps = range(0, a.shape[0], _ROWS) if a.shape else ()
        return all(torch.equal(mine[at : at + _ROWS], theirs[at : at + _ROWS]) for at in steps)
