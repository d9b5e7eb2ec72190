"""How long does one pass of the whole model take, with many candidates after a long prompt, and on a small GPU?"""

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.on_gpu.stage import Stage
from engine.models.causal_lm import CausalLM
from engine.models.room import Room
from engine.sampler.device_model import DeviceModel

GIB = 2**30


def step_seconds(stage: Stage, model: DeviceModel, b: int, drafts: int, suffix: int) -> float:
    """One captured pass over ``b`` rows of ``drafts + 1`` tokens, each behind ``suffix`` tokens of its own."""
    tokens, start = [[5] * (drafts + 1)] * b, model.prompt_length + suffix
    return stage.seconds(lambda: model.forward(tokens, [start] * b))


def long_prompt(stage: Stage) -> dict[str, Any]:
    """7B shape: a pass of 32 candidates behind one prompt of 8192 tokens, against a pass of one."""
    prompt, suffix, many = (40, 8, 4) if stage.dry else (8192, 256, 32)
    model = stage.open(stage.module("7B"), Room(many, 512, prompt))
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 500, (prompt,), generator=generator).tolist()

    def read() -> None:
        model.forget_prompt()  # otherwise it is known
        model.prefill(ids)

    seconds = stage.seconds(read, repeats=3)
    stage.say(f"reading {prompt} tokens: {seconds:.3f} s")
    # Real keys and values in every slot: the answers are read as one long line, a row after the other.
    for first in range(0, many, 8):
        rows = min(many, first + 8)
        model.forward([[7] * suffix if row >= first else [7] for row in range(rows)], [prompt] * rows, last_only=True)
    found = stage.found
    found["prefill_s"] = seconds
    for drafts in (0, 4):
        stage.check()
        one, all_ = (step_seconds(stage, model, b, drafts, suffix) for b in (1, many))
        stage.say(f"{prompt} x {many}, l = {drafts}: {1e3 * all_:.2f} ms, one: {1e3 * one:.2f} ms, {all_ / one:.2f}x")
        found[f"l{drafts}"] = {"one_s": one, "all_s": all_, "ratio": all_ / one}
    return found


class Int4Linear(nn.Module):
    """Weight-only int4 by PyTorch's own kernel, with random weights: 32 inputs share a scale. For timing only."""

    GROUP = 32

    def __init__(self, linear: nn.Linear):
        super().__init__()
        out, width, device = linear.out_features, linear.in_features, linear.weight.device
        pairs = torch.randint(0, 256, (out, width // 2), dtype=torch.uint8, device=device)
        self.weight = torch.ops.aten._convert_weight_to_int4pack(pairs, 8)
        self.scales = torch.full((width // self.GROUP, out, 2), 0.002, dtype=torch.bfloat16, device=device)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        out: Tensor = torch.ops.aten._weight_int4pack_mm(rows, self.weight, self.GROUP, self.scales)
        return out.view(*x.shape[:-1], -1) + (0 if self.bias is None else self.bias)


def to_int4(module: CausalLM) -> CausalLM:
    """Every linear layer but the head; one at a time, so that the card never holds both."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and name != "lm_head":
                setattr(parent, name, Int4Linear(child))
    return module


def small_card(stage: Stage) -> dict[str, Any]:
    """7B shape in int4, 8 candidates behind 4096 tokens, with no more than 8 GB of the card to use."""
    prompt, b = (40, 2) if stage.dry else (4096, 8)
    module, gpu = stage.module("7B"), torch.get_device_module(stage.device)
    stage.forget("7B")
    if not stage.dry:
        module = to_int4(module)
        stage.backend.release_cached_memory()
        gpu.reset_peak_memory_stats()
        gpu.set_per_process_memory_fraction(8e9 / gpu.get_device_properties(0).total_memory)
    try:
        model = stage.open(module, Room(b, 512, prompt))
        model.prefill([5] * prompt)
        found = stage.found
        for drafts in (0, 4):
            found[f"l{drafts}_s"] = step_seconds(stage, model, b, drafts, 64)
        peak = 0 if stage.dry else gpu.max_memory_reserved()
    finally:
        if not stage.dry:
            gpu.set_per_process_memory_fraction(1.0)
    stage.say(
        f"7B int4, {b} candidates behind {prompt} tokens under an 8 GB cap: {1e3 * found['l0_s']:.2f} ms a pass, "
        f"{1e3 * found['l4_s']:.2f} ms with 4 drafts; {peak / GIB:.2f} GiB at most"
    )
    return {**found, "peak_bytes": peak}
