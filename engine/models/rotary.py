"""RoPE scaling of a GGUF, in the terms of a transformers config, which transformers does not read itself. No torch."""

import math
from collections.abc import Sequence
from typing import Any

from engine.models.errors import UnsupportedModel
from engine.models.gguf_file import GgufHeader

FREQUENCIES = "rope_freqs.weight"
_LOW, _HIGH = 1.0, 4.0  # Llama 3's; the lengths that its publisher trained at first follow
_ORIGINALS = (8192, 4096, 2048, 16384, 32768)


def rotary_parameters(name: str, header: GgufHeader, theta: float, divisors: Sequence[float]) -> dict[str, Any]:
    """``rope_scaling`` for a config; empty where positions are not stretched.

    ``theta``: the base of the frequencies; ``divisors``: the file's tensor ``rope_freqs``, by which frequencies are
    divided, or nothing. Raises UnsupportedModel for a kind that is not known here.
    """
    declared = header.rotary
    kind = str(declared.get("type", "none"))
    if any(abs(divisor - 1) > 1e-4 for divisor in divisors):
        return {"rope_scaling": _llama3(name, theta, divisors)}
    if kind == "none" or (kind == "linear" and declared.get("factor", 1.0) == 1.0):
        return {}
    if kind == "linear":
        return {"rope_scaling": {"rope_type": "linear", "factor": float(declared["factor"])}}
    original = declared.get("original_context_length")
    if kind == "yarn" and original and declared.get("factor"):
        scaling = {"rope_type": "yarn", "factor": float(declared["factor"])}
        return {"rope_scaling": scaling | {"original_max_position_embeddings": int(original)}}
    raise _unknown(name, kind)


def llama3_divisors(theta: float, count: int, factor: float, original: int) -> list[float]:
    """By what Llama 3 divides the frequencies of ``count`` pairs, as llama.cpp writes it down."""
    found = []
    for pair in range(count):
        wave = 2 * math.pi * theta ** (pair / count)
        if wave < original / _HIGH:
            found.append(1.0)
        elif wave > original / _LOW:
            found.append(factor)
        else:
            smooth = (original / wave - _LOW) / (_HIGH - _LOW)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return found


def _llama3(name: str, theta: float, divisors: Sequence[float]) -> dict[str, Any]:
    factor = float(max(divisors))
    for original in _ORIGINALS:
        wanted = llama3_divisors(theta, len(divisors), factor, original)
        if all(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(divisors, wanted, strict=True)):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": _LOW,
                "high_freq_factor": _HIGH,
                "original_max_position_embeddings": original,
            }
    raise _unknown(name, "rope_freqs")


def _unknown(name: str, kind: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"{name} stretches its positions in a way ({kind}) that is not read from a GGUF; choose safetensors instead."
    )
