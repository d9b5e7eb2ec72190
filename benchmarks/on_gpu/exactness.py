"""Is what the GPU computes right? Kernels against float64, and losslessness in float32 on the device."""

import copy
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.on_gpu.attention import Case
from benchmarks.on_gpu.stage import Stage
from engine.contract import Sampling
from engine.models.causal_lm import CausalLM
from engine.models.room import Room
from engine.sampler.acceptance import Coupled
from engine.sampler.cost_table import CostTable
from engine.sampler.decoder import Decoder
from engine.sampler.drafters import Drafter, NoDrafter
from engine.sampler.drafters.draft_loop import LoopedDraftDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.policies.fixed import Fixed
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.stopping import Limits
from kernels.acceptance.triton import REJECTION, Counter, accept, cuts_of, draw, unpack
from kernels.attention.torch import packed_attention as torch_attention
from kernels.philox import DRAFT
from kernels.philox.torch import uniform as torch_uniform
from kernels.philox.triton import uniform as device_uniform

SMALL = Room(rows=4, slots=32, prompt=32)
FREE = Sampling(temperature=1.0, top_p=0.95)
ROUNDING = {torch.bfloat16: 1.5e-2, torch.float16: 2e-3, torch.float32: 1e-5}  # of a result's norm


def numbers(stage: Stage) -> dict[str, Any]:
    """Attention and the verdict's kernels against float64, and the random bits against the CPU's."""
    found = stage.found
    for prompt, b, drafts in [(33, 2, 4)] if stage.dry else [(1, 1, 0), (129, 8, 4), (2048, 8, 4), (2048, 32, 0)]:
        found[f"attention {prompt} x {b}, l = {drafts}"] = Case(stage, prompt, b, drafts).error()
    seed, index = torch.arange(257) * 2**45 + 11, torch.arange(257)
    on_cpu = torch_uniform(seed, index, index * 3, index * 5, DRAFT)
    seed, index = seed.to(stage.device), index.to(stage.device)
    found["random bits equal"] = torch.equal(device_uniform(seed, index, index * 3, index * 5, DRAFT).cpu(), on_cpu)
    logits = torch.randn(4, 512 if stage.dry else 152_064, device=stage.device) * 3
    counter = Counter(*(torch.arange(4, device=stage.device) + part for part in range(3)))
    drawn = draw(logits, cuts_of([(1.0, 0, 0.95, 0.0)] * 4, stage.device), counter, 0)
    kept = logits.double() >= drawn.floors.double()[:, None]
    p = logits.double().softmax(-1)
    smallest = torch.where(kept, p, 1.0).amin(-1)
    mass = torch.where(kept, p, 0.0).sum(-1)
    found["nucleus holds top-p and no more"] = bool(((mass >= 0.95 - 1e-5) & (mass - smallest < 0.95 + 1e-5)).all())
    found["worst log-sum-exp error"] = float((drawn.raw_totals - logits.double().logsumexp(-1)).abs().max())
    for name, value in found.items():
        stage.say(f"{name}: {value if isinstance(value, bool) else f'{value:.1e}'}")
    return found


def shapes(stage: Stage) -> dict[str, Any]:
    """The attention kernel in every precision and head size, groupings in turn; then windows, softcap and sinks."""
    from kernels.attention.triton import packed_attention

    kinds = list(product(ROUNDING, (64, 80, 96, 128, 256)))
    cases: list[tuple[torch.dtype, int, int, dict[str, Any]]] = [
        (dtype, dim, (7, 8, 1, 2, 4)[at % 5], {}) for at, (dtype, dim) in enumerate(kinds)
    ]
    cases += [(torch.bfloat16, 64, 8, {"window": 50, "sinks": True}), (torch.bfloat16, 256, 2, {"softcap": 30.0})]
    found = stage.found
    for dtype, dim, ratio, options in cases[:: 8 if stage.dry else 1]:
        stage.check()
        line, want = _ragged_attention(dtype, dim, ratio, options)
        got = packed_attention(*_onto(stage.device, line[:-1]), **_onto(stage.device, line[-1]))
        error = float((got.double().cpu() - want).norm() / want.norm())
        name = f"{str(dtype).removeprefix('torch.')}, heads of {dim}, {ratio} to a key head {options or ''}".rstrip()
        found[name] = {"error": error, "holds": error < ROUNDING[dtype]}
        stage.say(f"{name}: {error:.1e}{'' if found[name]['holds'] else ' TOO MUCH'}")
    return found


def _ragged_attention(dtype: torch.dtype, dim: int, ratio: int, options: dict[str, Any]) -> tuple[list[Any], Tensor]:
    """Arguments of ``packed_attention`` for three uneven rows, the last of them its options; and the truth."""
    generator, groups, prompt = torch.Generator().manual_seed(dim + ratio), 2, 130
    heads, counts, lengths = groups * ratio, (3, 1, 5), (0, 70, 20)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    starts = torch.tensor([0, 3, 4, 9], dtype=torch.int32)
    positions = [prompt + length + at for count, length in zip(counts, lengths, strict=True) for at in range(count)]
    query, prefix = normal(9, heads, dim), (normal(1, groups, 160, dim), normal(1, groups, 160, dim))
    suffix = (normal(3, groups, 96, dim), normal(3, groups, 96, dim))
    more: dict[str, Any] = {"scaling": dim**-0.5, **options} | ({"sinks": normal(heads)} if "sinks" in options else {})
    line = [query, prefix, suffix, starts, torch.tensor(positions, dtype=torch.int32), torch.tensor([prompt]), more]
    wide: Any = [(pair[0].double(), pair[1].double()) for pair in (prefix, suffix)]
    exact: dict[str, Any] = {key: value.double() if isinstance(value, Tensor) else value for key, value in more.items()}
    return line, torch_attention(query.double(), *wide, *line[3:6], **exact)


def _onto(device: torch.device, parts: Any) -> Any:
    if isinstance(parts, Tensor):
        return parts.to(device)
    if isinstance(parts, dict):
        return {key: _onto(device, part) for key, part in parts.items()}
    return type(parts)(_onto(device, part) for part in parts) if isinstance(parts, list | tuple) else parts


def lossless(stage: Stage) -> dict[str, Any]:
    """A tiny model in float32 behind captured graphs; tokens must be those of plain decoding."""
    stock = _tiny(stage)
    prompts = [[3, 4, 5, 6, 3, 4], list(range(5, 28))][: 1 if stage.dry else 2]
    n, tokens = (2, 4) if stage.dry else (8, 40)
    always, same, alone_too = "draft = target is always accepted", "drafts change no token", "alone as among 8"
    found = dict.fromkeys((always, same, alone_too), True)
    for prompt in prompts:
        want = [row.tokens for row in _decode(stage, stock, prompt, range(1, n + 1), tokens, "none")]
        alone = [row.tokens for row in _decode(stage, stock, prompt, [2], tokens, "suffix")]
        found[alone_too] &= alone[0] == want[1]
        for drafter in ("suffix", "draft-model"):
            stage.check()
            rows = _decode(stage, stock, prompt, range(1, n + 1), tokens, drafter)
            found[same] &= [row.tokens for row in rows] == want
            if drafter == "draft-model":
                found[always] &= all(r.proposed == r.accepted > 0 for r in rows)
        stage.found.update(found)  # not before: what was not looked at holds for nobody
    for name, holds in found.items():
        stage.say(f"{name}: {holds}")
    return found


def rejection(stage: Stage) -> dict[str, Any]:
    """One token by the rejection rule, many times over, is distributed as the target says."""
    count = 16 if stage.dry else 1 << 17
    p_logits = torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0], device=stage.device)
    q_logits = torch.tensor([0.0, 2.0, 0.5, 0.0, -3.0], device=stage.device)
    index = torch.arange(count, device=stage.device)
    cuts = cuts_of([(1.0, 0, 1.0, 0.0)], stage.device)
    q = draw(q_logits.expand(count, -1), cuts.repeat(count, 1), Counter(index * 0 + 11, index * 0 + 1, index), DRAFT)
    drafts = torch.stack([q.tokens, torch.full_like(q.tokens, -1)], dim=1).flatten()
    positions = torch.stack([index, index + 1], dim=1).flatten()
    counter = Counter(positions * 0 + 11, positions * 0 + 1, positions)
    starts = torch.arange(0, 2 * count + 1, 2, device=stage.device, dtype=torch.int32)
    places = torch.repeat_interleave(index, 2).int()
    line = (p_logits.expand(2 * count, -1), cuts.repeat(2 * count, 1), counter, drafts, starts, REJECTION)
    accepted, tokens, _ = unpack(accept(*line, q=(q, places)).cpu(), count)
    first = torch.where(accepted > 0, q.tokens.cpu(), tokens)
    p = p_logits.double().softmax(-1).cpu()
    seen = first.long().bincount(minlength=5)
    chi_square = float((((seen - count * p) ** 2) / (count * p)).sum())
    stage.say(f"rejection rule, {count} draws, chi-square {chi_square:.1f} (18.5 at 0.1 %, 4 degrees of freedom)")
    return {"chi_square": chi_square, "holds": chi_square < 18.5, "acceptance": float(accepted.double().mean())}


def replay_lengths(stage: Stage) -> dict[str, Any]:
    """One set of graphs at prompt lengths 5, 500, 5, against the same model run eagerly in plain torch."""
    stock = _tiny(stage)
    graphed = stage.open(copy.deepcopy(stock), Room(4, 32, 512))
    eager = RaggedModel(copy.deepcopy(stock), graphed.vocabulary)
    worst = 0.0
    for length in (5, 20, 5) if stage.dry else (5, 500, 5):
        prompt = [3 + at % 90 for at in range(length)]
        for model in (graphed, eager):
            model.forget_prompt()
            model.prefill(prompt)
        for drafts in (0, 3, 1):
            lines, starts = [[4] * (drafts + 1), [9]], [length, length]
            got, want = graphed.forward(lines, starts).logits, eager.forward(lines, starts).logits
            worst = max(worst, float((got - want).abs().max()))
    reason = graphed.graphs.reason
    stage.say(f"graphs replayed at other lengths: logits off by at most {worst:.1e}. {reason}")
    return {"worst": worst, "reason": reason}


def _tiny(stage: Stage) -> CausalLM:
    config = AutoConfig.for_model(
        "llama", hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=97, max_position_embeddings=2048,
    )  # fmt: skip
    torch.manual_seed(0)
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    for parameter in module.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    moved: CausalLM = module.to(stage.device)
    return moved.requires_grad_(False)


def _decode(
    stage: Stage, stock: CausalLM, prompt: Sequence[int], numbers: Sequence[int], tokens: int, drafter: str
) -> list[Row]:
    target = stage.open(copy.deepcopy(stock), SMALL)
    chosen: Drafter = NoDrafter()
    if drafter == "suffix":
        chosen = SuffixDrafter()
    elif drafter == "draft-model":
        chosen = LoopedDraftDrafter(stage.open(copy.deepcopy(stock), SMALL), Coupled())
    decoder = Decoder(target, chosen, Fixed(4 if drafter != "none" else 0), Coupled(), CostTable({1: 1.0, 64: 2.0}))
    rows = [Row(n, 5, prompt, Limits(frozenset(), tokens), lambda ids: "", FREE) for n in numbers]
    last = target.prefill(prompt)
    assert last is not None
    chosen.begin(prompt, lambda done: True)
    decoder.join(list(rows), last)
    while decoder.leave() is not None and decoder.rows:
        decoder.step()
    return rows
