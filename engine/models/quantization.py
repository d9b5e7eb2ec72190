"""Weights in a folder that are kept in fewer bits: which can be made whole again exactly, and which cannot. No torch.

Read from tensors first and from the config second: a config may keep a ``quantization_config`` of weights that are not
quantised any more, and some programs name none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.models.errors import UnsupportedModel
from engine.models.folders import Stored

FLOATS = ("F64", "F32", "F16", "BF16")
_FP8 = ("F8_E4M3", "F8_E5M2")
# Methods that keep a weight as number times scale. All their scales multiply, ``weight_scale_inv`` too.
_SCALED = ("", "fp8", "fbgemm_fp8", "compressed-tensors", "modelopt")
_SCALE_NAMES = ("_scale_inv", "_scale")
_ZERO_POINT = "_zero_point"
_MASKS = re.compile(r"(^|\.)(attn|attention|self_attention)\.(bias|masked_bias)$|position_ids$|causal_mask$")
_NAMES = {"bitsandbytes": "bitsandbytes", "gptq": "GPTQ", "awq": "AWQ", "modelopt": "ModelOpt", "bitnet": "BitNet"}
# By what a tensor is called, where the config is silent.
_TRACES = {
    ".qweight": "GPTQ or AWQ",
    ".q_weight": "EXL2",
    ".absmax": "bitsandbytes",
    ".SCB": "bitsandbytes",
    ".weight_packed": "compressed-tensors",
    ".scales": "MLX",
    ".W_q": "HQQ",
}


@dataclass(frozen=True)
class Scales:
    """By a quantised tensor's name, the names of its scale and, where it has one, of its zero point.

    ``block``: rows and columns that share a scale, where the config says it. ``delegated``: transformers makes the
    weights whole (MXFP4).
    """

    scale: Mapping[str, str] = field(default_factory=dict)
    zero: Mapping[str, str] = field(default_factory=dict)
    block: tuple[int, int] | None = None
    delegated: bool = False

    @property
    def helpers(self) -> set[str]:
        """Tensors that are no weights themselves."""
        return {*self.scale.values(), *self.zero.values()}


def scales_of(name: str, config: Mapping[str, Any], stored: Mapping[str, Stored]) -> Scales:
    """How the quantised weights of ``stored`` are made whole; nothing to do where none is quantised.

    Raises UnsupportedModel, which names the method and what to choose instead, where that cannot be done exactly.
    """
    declared = _declared(config)
    method = str(declared.get("quant_method") or "")
    quantised = [key for key, tensor in stored.items() if _is_quantised(key, tensor)]
    if not quantised and not any(key.endswith(".qweight") for key in stored):
        return Scales()
    if method == "mxfp4":
        return Scales(delegated=True)
    weights = [key for key in quantised if not key.endswith((*_SCALE_NAMES, _ZERO_POINT))]
    allowed = (*_FP8, "I8") if method == "compressed-tensors" else _FP8
    are_numbers = all(stored[key].dtype in allowed for key in weights)
    if method not in _SCALED or declared.get("transform_config") or not are_numbers:
        raise UnsupportedModel(
            f"{name} is quantised with {_label(method, declared, config, stored)}, which Bassline does not read; "
            "choose a GGUF of it, or the version that is not quantised."
        )
    scale = {key: found for key in weights if (found := _scale_name(key, stored))}
    bare = [key for key in weights if key not in scale]
    if bare and (scale or declared or stored[bare[0]].dtype == "I8"):
        raise UnsupportedModel(
            f"{name} is quantised, and the scale of {bare[0]} is not in its files; "
            "fetch them again, choose a GGUF of it, or the version that is not quantised."
        )
    zero = {key: key + _ZERO_POINT for key in scale if key + _ZERO_POINT in stored}
    return Scales(scale, zero, _block(declared))


def _declared(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the config says of quantisation, wherever it says it."""
    for part in (config, config.get("text_config")):
        for key in ("quantization_config", "compression_config", "quantization"):
            if isinstance(part, Mapping) and isinstance(part.get(key), Mapping) and part[key]:
                return dict(part[key])
    return {}


def _is_quantised(name: str, tensor: Stored) -> bool:
    """A tensor of small or packed numbers that is not one of the masks that older files keep."""
    return tensor.dtype not in (*FLOATS, "BOOL", "I64") and not _MASKS.search(name)


def _scale_name(name: str, stored: Mapping[str, Stored]) -> str:
    return next((name + suffix for suffix in _SCALE_NAMES if name + suffix in stored), "")


def _block(declared: Mapping[str, Any]) -> tuple[int, int] | None:
    block = declared.get("weight_block_size")
    if block is None:
        groups = declared.get("config_groups")
        for group in groups.values() if isinstance(groups, Mapping) else ():
            block = block or ((group or {}).get("weights") or {}).get("block_structure")
    if isinstance(block, (list, tuple)) and len(block) == 2 and all(isinstance(n, int) and n > 0 for n in block):
        return block[0], block[1]
    return None


def _label(method: str, declared: Mapping[str, Any], config: Mapping[str, Any], stored: Mapping[str, Stored]) -> str:
    if method == "compressed-tensors":
        return f"compressed-tensors ({declared.get('format', 'packed')})"
    if method:
        bits = declared.get("bits") or (4 if declared.get("load_in_4bit") else None)
        return _NAMES.get(method, method) + (f" ({bits} bits)" if bits else "")
    if isinstance(config.get("quantization"), Mapping):
        return "MLX"
    found = (label for trace, label in _TRACES.items() if any(name.endswith(trace) for name in stored))
    return next(found, "a method that its config does not name")
