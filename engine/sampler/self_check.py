"""Does this model really run in a ragged batch? Asked at load, against its own stock attention."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from engine.backends.memory import is_out_of_memory
from engine.models.causal_lm import CausalLM
from engine.models.errors import UnsupportedModel
from engine.sampler.faults import first_line
from engine.sampler.ragged_model import RaggedModel

PROMPT, SUFFIXES = 9, (7, 3)  # tokens: uneven on purpose
WINDOW = 6  # tokens that a sliding window is narrowed to, so that the check looks behind it
# Root mean square difference of the logits, as a share of their spread. A wrong mask or scale moves them by about
# the spread itself. Row-scaled int8 rounds activations, so the last bits of attention move its logits by a tenth,
# in stock transformers (with cache against without) just as much.
TOLERANCE = {"float32": 1e-4, "float64": 1e-9, "float16": 0.02, "bfloat16": 0.1, "int4": 0.1, "int8": 0.3}
UNBATCHABLE_LAYERS = ("linear_attention", "mamba", "conv", "recurrent", "chunked_attention")
UNBATCHABLE_ROPE = ("longrope", "dynamic")


def refuse_by_name(module: CausalLM, name: str) -> None:
    """What is known not to work, whatever a small check would say. Raises UnsupportedModel."""
    config = module.config.get_text_config()
    # A "yes" proves nothing, but a "no" holds: bloom, falcon and mpt, and CodeGen before transformers 5.24.
    if not module._can_set_attn_implementation():
        raise UnsupportedModel(
            f"{name} is a {config.model_type} model, whose attention this release of transformers cannot exchange; "
            "choose another model, or update transformers."
        )
    kinds = set(getattr(config, "layer_types", None) or ())
    unfit = sorted(kind for kind in kinds if any(word in kind for word in UNBATCHABLE_LAYERS))
    if not unfit and getattr(module, "_is_stateful", False):  # transformers' own word for models without attention
        unfit = ["recurrent"]
    if unfit:
        raise UnsupportedModel(
            f"{name} has {unfit[0].replace('_', ' ')} layers, whose state cannot be rolled back when a draft is "
            "rejected; choose a model with plain attention."
        )


def longest_context(module: CausalLM, context: int) -> int:
    """``context``, or the length at which one row's RoPE would start to change another's."""
    config = module.config.get_text_config()
    declared = getattr(config, "rope_parameters", None) or {}
    by_kind = [kind for kind in declared.values() if isinstance(kind, dict)]  # of layer, where they differ in this
    for rope in by_kind or [declared]:
        if rope.get("rope_type") in UNBATCHABLE_ROPE:
            original = rope.get("original_max_position_embeddings") or config.max_position_embeddings
            context = min(context, int(original))
    return context


def check_ragged(model: RaggedModel, name: str, precision: str) -> None:
    """Two uneven rows behind one prompt against stock eager attention, row by row; raises UnsupportedModel.

    A sliding window is wider than what can be read for a check, and some models apply theirs where only stock
    attention sees it: they are asked once more with a narrow one.
    """
    _compare(model, name, precision)
    if _has_window(model.module):
        with _narrow_window(model.module):
            # A plain door of its own: nothing that ``model`` has captured or compiled may know of this window.
            _compare(RaggedModel(model.module, model.vocabulary), name, precision, "behind its sliding window ")


@torch.inference_mode()
def _compare(model: RaggedModel, name: str, precision: str, where: str = "") -> None:
    vocabulary = min(model.vocabulary, 1000)
    generator = torch.Generator().manual_seed(0)
    prompt, *suffixes = (
        torch.randint(vocabulary // 2, vocabulary, (count,), generator=generator).tolist()
        for count in (PROMPT, *SUFFIXES)
    )
    try:
        model.prefill(prompt)
        got = model.forward(suffixes, [PROMPT] * len(suffixes), last_only=True).logits
        want = torch.stack([_stock_logits(model, prompt + suffix) for suffix in suffixes])
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise UnsupportedModel(
            f"{name} cannot run in a ragged batch ({type(error).__name__}: {first_line(error)}); choose another model."
        ) from error
    finally:
        model.clear()
    if not want.isfinite().all():
        raise UnsupportedModel(
            f"{name} computes no numbers (NaN or infinity): its weights are damaged, or made for another precision "
            f"than {precision}; fetch them again, or choose another precision."
        )
    worst = ((got - want).float().std(-1) / want.float().std(-1)).max().item()
    if not worst <= TOLERANCE[precision]:
        raise UnsupportedModel(
            f"{name} gives other results in a ragged batch than alone {where}(logits differ by {worst:.2g} of their "
            "spread); choose another model."
        )


def _has_window(module: CausalLM) -> bool:
    """Whether a text can grow longer than the model's sliding window."""
    config = module.config.get_text_config()
    window, longest = getattr(config, "sliding_window", None), getattr(config, "max_position_embeddings", None)
    return isinstance(window, int) and window > WINDOW and (longest is None or window < longest)


@contextmanager
def _narrow_window(module: CausalLM) -> Iterator[None]:
    """Every sliding window of ``module``, in its config and in its layers, as ``WINDOW`` tokens for a while."""
    config = module.config.get_text_config()
    before = getattr(module.config, "_attn_implementation", None)
    wide = config.sliding_window
    parts = list(module.modules())
    owners: dict[int, Any] = {
        id(one): one for one in (config, *parts, *(getattr(part, "config", None) for part in parts))
    }
    narrowed = [one for one in owners.values() if _window_of(one) == wide]
    try:
        for one in narrowed:
            one.sliding_window = WINDOW
        yield
    finally:
        for one in narrowed:
            one.sliding_window = wide
        module.set_attn_implementation(before)


def _window_of(one: object) -> int | None:
    window = getattr(one, "sliding_window", None)
    return window if isinstance(window, int) else None


def _stock_logits(model: RaggedModel, tokens: list[int]) -> torch.Tensor:
    """Logits ``[V]`` after ``tokens`` from the model as transformers ships it."""
    with model.stock_attention():
        out = model.module(input_ids=torch.tensor([tokens], device=model.device), use_cache=False)
    logits: torch.Tensor = out.logits
    return logits[0, -1, : model.vocabulary]
