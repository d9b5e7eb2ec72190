"""How long does attention take beside other implementations, and what share of the memory bandwidth does it use?

One layer of the 7B shape. *ours* is the product's kernel. *SDPA, prompt per row* keeps a copy of the prompt for every
row in one padded batch (BASS-PAD in the paper's ablation), *SDPA, row by row* is one call per row (BASS-SPLIT), *flex*
is PyTorch's compiled attention over the padded batch; it comes last, because it compiles for long.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.on_gpu.stage import OverBudget, Stage
from kernels.attention.torch import packed_attention as torch_attention

HEADS, GROUPS, DIM, SUFFIX = 28, 4, 128, 256
PROMPTS, BATCHES, DRAFTS = (128, 2048, 8192, 32_768), (8, 32), (0, 4)


class Case:
    """Queries of ``b`` rows, ``l + 1`` each, behind a shared prompt and ``SUFFIX`` tokens of their own."""

    def __init__(self, stage: Stage, prompt: int, b: int, drafts: int):
        self.dry = stage.dry
        heads, groups, dim = (4, 2, 16) if stage.dry else (HEADS, GROUPS, DIM)
        self.b, self.queries, self.prompt = b, drafts + 1, prompt
        self.slots = SUFFIX // (16 if stage.dry else 1) + self.queries

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, device=stage.device, dtype=stage.dtype)

        self.query = normal(b * self.queries, heads, dim)
        self.prefix = (normal(1, groups, prompt, dim), normal(1, groups, prompt, dim))
        self.suffix = (normal(b, groups, self.slots, dim), normal(b, groups, self.slots, dim))
        self.starts = torch.arange(0, b * self.queries + 1, self.queries, device=stage.device, dtype=torch.int32)
        first = prompt + self.slots - self.queries
        own = torch.arange(first, first + self.queries, device=stage.device, dtype=torch.int32)
        self.positions, self.length = own.repeat(b), torch.tensor([prompt], device=stage.device)
        keys = self.prefix[0].numel() + self.suffix[0].numel()
        self.bytes = 2 * keys * self.query.element_size()

    def ours(self, **options: Any) -> Tensor:
        line = (self.starts, self.positions, self.length)
        if self.dry:
            return torch_attention(self.query, self.prefix, self.suffix, *line, scaling=0.1)
        from kernels.attention.triton import packed_attention

        return packed_attention(self.query, self.prefix, self.suffix, *line, scaling=0.1, **options)

    def error(self) -> float:
        """Of our kernel against the twin in float64, as a share of the result's norm."""
        (keys, values), (own_keys, own_values) = (
            (pair[0].double().cpu(), pair[1].double().cpu()) for pair in (self.prefix, self.suffix)
        )
        line = (self.starts.cpu(), self.positions.cpu(), self.length.cpu())
        query = self.query.double().cpu()
        want = torch_attention(query, (keys, values), (own_keys, own_values), *line, scaling=0.1)
        return float((self.ours().double().cpu() - want).norm() / want.norm())

    def copied(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The padded batch: queries, keys, values ``[b, heads, ...]`` with the prompt for every row, and its mask."""
        query = self.query.unflatten(0, (self.b, self.queries)).transpose(1, 2).contiguous()
        pairs = zip(self.prefix, self.suffix, strict=True)
        keys, values = (torch.cat([p.expand(self.b, -1, -1, -1), s], dim=2) for p, s in pairs)
        at = torch.arange(keys.shape[2], device=query.device)
        return query, keys, values, at <= self.positions[: self.queries, None]


def sdpa(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    mask_ = None if query.shape[2] == 1 else mask
    return torch.nn.functional.scaled_dot_product_attention(query, keys, values, mask_, scale=0.1, enable_gqa=True)


def against_others(stage: Stage) -> dict[str, Any]:
    stage.say("| prompt | b | l | ours us | bandwidth | of copy | SDPA, prompt per row | SDPA, row by row |")
    stage.say("|---|---|---|---|---|---|---|---|")
    found = stage.rows
    for prompt in (33,) if stage.dry else PROMPTS:
        for b in (2,) if stage.dry else BATCHES:
            for drafts in DRAFTS:
                stage.check()
                found.append(_compared(stage, Case(stage, prompt, b, drafts)))
    return {"rows": found}


def _compared(stage: Stage, case: Case) -> dict[str, Any]:
    query, keys, values, mask = case.copied()
    error = case.error() if case.prompt <= 2048 else float("nan")
    rows = [slice(row, row + 1) for row in range(case.b)]
    ways: dict[str, Callable[[], Tensor]] = {
        "ours": case.ours,
        "pad": lambda: sdpa(query, keys, values, mask),
        "split": lambda: torch.cat([sdpa(query[row], keys[row], values[row], mask) for row in rows]),
    }
    times = {name: stage.seconds(stage.graphed(way)) for name, way in ways.items()}
    rate = case.bytes / times["ours"]
    micro = {name: f"{1e6 * seconds:.1f}" for name, seconds in times.items()}
    stage.say(
        f"| {case.prompt} | {case.b} | {case.queries - 1} | {micro['ours']} | {rate / 1e12:.2f} TB/s "
        f"| {rate / stage.copy_bandwidth:.0%} | {micro['pad']} | {micro['split']} |"
    )
    shape = {"prompt": case.prompt, "b": case.b, "l": case.queries - 1, "error": error}
    return {**shape, "seconds": times, "bytes_per_s": rate, "of_copy": rate / stage.copy_bandwidth}


def tilings(stage: Stage) -> dict[str, Any]:
    """Whether other tiles would be faster than those that are chosen: a lead for whoever tunes the kernel."""
    if stage.dry:
        return {"rows": "none in a dry run"}
    from dataclasses import replace

    from kernels.attention.triton import Tiling

    found = stage.rows
    stage.say("| prompt 8192, b = 8 | tiles | us |")
    stage.say("|---|---|---|")
    for drafts in DRAFTS:
        case = Case(stage, 8192, 8, drafts)
        processors = torch.get_device_module(stage.device).get_device_properties(stage.device).multi_processor_count
        chosen = Tiling.choose(len(case.query), case.b, 7, GROUPS, 2 * DIM, 8192, case.slots, processors)
        others = [{}, {"stages": 3}, {"keys": 128}, {"keys": 32, "stages": 3}, {"warps": 4}, {"warps": 8}]
        others += [{"prompt_splits": max(1, int(chosen.prompt_splits * factor))} for factor in (0.5, 2)]
        for other in others:
            stage.check()
            tiling = replace(chosen, **other)
            try:
                seconds = stage.seconds(stage.graphed(lambda: case.ours(tiling=tiling)))  # noqa: B023
            except OverBudget:
                raise
            except Exception as error:  # tiles that need more shared memory than there is
                stage.say(f"| l = {drafts} | {other} | {type(error).__name__} |")
                continue
            stage.say(f"| l = {drafts} | {other or 'chosen'} | {1e6 * seconds:.1f} |")
            found.append({"l": drafts, "tiling": repr(tiling), "seconds": seconds})
    return {"rows": found}


def flex(stage: Stage) -> dict[str, Any]:
    """PyTorch's flex attention over the padded batch, l = 4: compiled once for all sizes, the most telling first."""
    if stage.dry:
        return {"rows": "none in a dry run"}
    from torch.nn.attention.flex_attention import flex_attention

    compiled, found = torch.compile(flex_attention, dynamic=True), stage.rows
    stage.say("| prompt | b | l | flex us | ours us |")
    stage.say("|---|---|---|---|---|")
    for prompt in (8192, 32_768, 2048, 128):
        for b in BATCHES:
            stage.check()
            case = Case(stage, prompt, b, 4)
            query, keys, values, _ = case.copied()
            first = torch.tensor(case.prompt + case.slots - case.queries, device=stage.device)

            def causal(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor, first: Tensor = first) -> Tensor:
                return torch.where(k <= first + q, score, -float("inf"))

            ask = partial(compiled, query, keys, values, score_mod=causal, scale=0.1, enable_gqa=True)
            theirs, ours = stage.seconds(ask), stage.seconds(stage.graphed(case.ours))
            stage.say(f"| {prompt} | {b} | 4 | {1e6 * theirs:.1f} | {1e6 * ours:.1f} |")
            found.append({"prompt": prompt, "b": b, "l": 4, "flex_s": theirs, "ours_s": ours})
    return {"rows": found}
