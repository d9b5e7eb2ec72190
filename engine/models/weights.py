"""A folder of config and weights to a module that computes."""

from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoConfig

from engine.backends.registry import device_of
from engine.models.causal_lm import CausalLM
from engine.models.checkpoint import Checkpoint, open_checkpoint
from engine.models.skeleton import empty_model, ties_of
from kernels.elementwise import compile_elementwise
from kernels.int8_linear import Int8Linear, join_siblings, quantize_weight

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.float32,  # all that is not a linear layer
}
_INT8, _SCALE = ".int8", ".scale"  # in the place of ".weight" for a quantised linear layer


def quantized_tensors(tensors: Iterable[tuple[str, torch.Tensor]], model: nn.Module) -> dict[str, torch.Tensor]:
    """Every linear layer's weight as int8 and scales, all else float32.

    ``model``: the module without weights. A linear layer that is tied (a head to the embedding) gets its own, unless
    ``tensors`` have one.
    """
    linear = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    state: dict[str, torch.Tensor] = {}
    for name, tensor in tensors:
        layer = name.removesuffix(".weight")
        if layer in linear and name != layer:
            state[layer + _INT8], state[layer + _SCALE] = quantize_weight(tensor.float())
        else:
            state[name] = tensor.float().contiguous()
    for target, source in ties_of(model).items():
        layer = target.removesuffix(".weight")
        if layer in linear and layer + _INT8 not in state:
            state[layer + _INT8], state[layer + _SCALE] = quantize_weight(state[source])
    return state


def load_int8(folder: Path, weights: Path) -> CausalLM:
    """The model of a folder converted to int8. Floats are mapped from the file, not read: the embedding's rows come
    into memory as they are used. Raises SafetensorError or KeyError when the file is not what this module wrote."""
    model = empty_model(AutoConfig.from_pretrained(folder, local_files_only=True))
    state = load_file(weights)
    for parent_name, parent in list(model.named_modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Linear):
                path = f"{parent_name}.{name}".removeprefix(".")
                quantized, scale = state.pop(path + _INT8), state.pop(path + _SCALE)
                setattr(parent, name, Int8Linear(quantized, scale, state.pop(path + ".bias", None)))
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    if missing or unexpected:
        raise KeyError(f"{folder}: missing {missing}, unexpected {unexpected}")
    compile_elementwise(model)
    return join_siblings(model, lambda: model(input_ids=torch.tensor([[0]]), use_cache=False))


def load_float(folder: Path, precision: str, device: torch.device) -> CausalLM:
    """The model of any folder with safetensors, in a float precision, on ``device``; every weight is from the folder.

    On a kind of GPU without a number, a model that exceeds the first is spread over all (accelerate's placement).
    Raises WrongFile or UnsupportedModel.
    """
    checkpoint = open_checkpoint(folder)
    spread = device_of(device).exceeds_first(_size(checkpoint, DTYPES[precision]))
    model = checkpoint.load(DTYPES[precision], spread=spread)
    return model if spread else model.to(device)


def _size(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Bytes of the weights."""
    return sum(parameter.numel() for parameter in checkpoint.model.parameters()) * dtype.itemsize
