"""A folder of config and weights to a module that computes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from accelerate import init_empty_weights
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from engine.models.errors import UnsupportedModel, WrongFile
from kernels.elementwise import compile_elementwise
from kernels.int8_linear import Int8Linear, join_siblings, quantize_weight

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.float32,  # all that is not a linear layer
}
_INT8, _SCALE = ".int8", ".scale"  # in the place of ".weight" for a quantised linear layer


def empty_model(config: PretrainedConfig) -> nn.Module:
    """The module with parameters that take no memory yet; its buffers (rotary frequencies) are real."""
    with init_empty_weights(include_buffers=False):
        model: nn.Module = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    return model.eval()


def quantized_tensors(tensors: Iterable[tuple[str, torch.Tensor]], config: PretrainedConfig) -> dict[str, torch.Tensor]:
    """Every linear layer's weight as int8 and scales, all else float32. A head tied to the embedding gets its own."""
    linear = {name for name, module in empty_model(config).named_modules() if isinstance(module, nn.Linear)}
    state: dict[str, torch.Tensor] = {}
    for name, tensor in tensors:
        layer = name.removesuffix(".weight")
        if layer in linear and name != layer:
            state[layer + _INT8], state[layer + _SCALE] = quantize_weight(tensor)
        else:
            state[name] = tensor.float().contiguous()
    if config.tie_word_embeddings and "lm_head" in linear:
        embedding = state["model.embed_tokens.weight"]
        state["lm_head" + _INT8], state["lm_head" + _SCALE] = quantize_weight(embedding)
    return state


def load_int8(folder: Path, weights: Path) -> nn.Module:
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


def load_float(folder: Path, precision: str, device: torch.device) -> nn.Module:
    """The model of any folder with safetensors, in a float precision, on ``device``.

    On ``cuda`` without a number, a model that exceeds the first GPU is spread over all (accelerate's placement).
    """
    spread = device == torch.device("cuda") and _exceeds_first_gpu(folder, DTYPES[precision])
    with from_folder_errors(folder):
        model: nn.Module = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[precision],
            attn_implementation="eager",
            local_files_only=True,
            device_map="auto" if spread else None,
        )
    return model if spread else model.to(device)


def _exceeds_first_gpu(folder: Path, dtype: torch.dtype) -> bool:
    """Whether the weights and a tenth more, for keys, values and workspace, do not fit where there is another GPU."""
    if torch.cuda.device_count() < 2:
        return False
    model = empty_model(AutoConfig.from_pretrained(folder, local_files_only=True))
    size = sum(parameter.numel() for parameter in model.parameters()) * dtype.itemsize
    return size * 1.1 > torch.cuda.mem_get_info(0)[0]


@contextmanager
def from_folder_errors(folder: Path) -> Iterator[None]:
    """Turn what transformers and safetensors raise about a bad folder into a sentence."""
    try:
        yield
    except SafetensorError as error:
        raise WrongFile(f"The weights in {folder} are damaged or cut off; fetch them again.") from error
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnsupportedModel(f"The model in {folder} cannot be loaded: {reason}") from error
