"""How much faster is speculative decoding than our own graph-captured regular decoding, on the same model?

Weights are random, so acceptance cannot be the model's own. It is *replayed*: the real suffix drafter guesses over
recorded answers, and a guess stays where the recording says the same; or *forced* to a rate. All else is done for real:
planning, the pass, the verdict's kernels, the copy to the host. Detokenising is not part of it.
"""

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.on_gpu.stage import Stage
from engine.contract import Sampling
from engine.models.room import Room
from engine.sampler.acceptance import Coupled, Proposals
from engine.sampler.budget import DraftBudget
from engine.sampler.cost_table import CostTable, measure
from engine.sampler.decoder import Decoder
from engine.sampler.device_model import DeviceModel
from engine.sampler.drafters import Drafter, NoDrafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.policies import DraftOutcome, Policy
from engine.sampler.policies.fixed import Fixed
from engine.sampler.policies.goodput import Goodput
from engine.sampler.row import Row
from engine.sampler.stopping import Limits
from engine.sampler.verdict import Verdict

TRACES = Path(__file__).parent.parent / "traces"
SIZES = (1, 2, 4, 8, 16, 32)
FORCED = 0.8
CONTEXT = 256  # tokens behind which passes of the recorded answers stand, about

Fate = Callable[[Row, Sequence[int], int], tuple[int, int]]  # row, drafts, judged token -> accepted, next token


class ReplayDecoder(Decoder):
    """``Decoder`` whose verdict is reached as ever, and then replaced by a recorded or forced one."""

    def __init__(self, *parts: Any, fate: Fate):
        super().__init__(*parts)
        self._fate = fate
        self.verified = 0

    def _commit(self, rows: Sequence[Row], proposals: Proposals, verdict: Verdict) -> list[DraftOutcome]:
        self.verified += len(verdict.scores)
        outcomes = []
        for index, (row, drafts) in enumerate(zip(rows, proposals.tokens, strict=True)):
            count, token = self._fate(row, drafts, verdict.tokens[index])
            row.commit([*drafts[:count], token], [0.0] * (count + 1), proposed=len(drafts))
            outcomes.append(DraftOutcome(row.candidate, len(drafts), count, drawn=proposals.drawn(index)))
        return outcomes


@dataclass(frozen=True)
class Trace:
    """Recorded answers to one prompt. A dry run folds the ids into its small vocabulary and cuts the answers short."""

    name: str
    temperature: float
    prompt: list[int]
    answers: list[list[int]]

    @classmethod
    def read(cls, path: Path, stage: Stage) -> "Trace":
        kept = json.loads(path.read_text(encoding="utf-8"))
        prompt, answers = kept["prompt"], kept["candidates"]
        if stage.dry:
            prompt, answers = [t % 500 for t in prompt], [[t % 500 for t in answer[:8]] for answer in answers]
        return cls(kept["prompt_name"], kept["temperature"], prompt, answers)

    def fate(self, row: Row, drafts: Sequence[int], judged: int) -> tuple[int, int]:
        """What became of the drafts when the answer was recorded."""
        rest = self.answers[row.candidate - 1][len(row.tokens) :]
        right = next((n for n, (a, b) in enumerate(zip(drafts, rest, strict=False)) if a != b), len(drafts))
        count = min(right, len(rest) - 1)
        return count, rest[count]


def forced(rate: float, seed: int = 0) -> Fate:
    """Each draft is accepted with this chance, whatever it is."""
    chance = random.Random(seed)

    def fate(row: Row, drafts: Sequence[int], judged: int) -> tuple[int, int]:
        return next((n for n in range(len(drafts)) if chance.random() >= rate), len(drafts)), judged

    return fate


@dataclass(frozen=True)
class Timing:
    """One run over all rows: ``ms`` per token and sequence; ``utilisation`` of the measured matrix product rate."""

    ms: float
    tokens_per_s: float
    utilisation: float
    steps: int
    accepted: float
    tokens: int


def run(
    stage: Stage,
    model: DeviceModel,
    prompt: Sequence[int],
    lengths: Sequence[int],
    sampling: Sampling,
    drafter: Drafter,
    policy: Policy,
    costs: CostTable,
    fate: Fate,
) -> Timing:
    """Decode rows of these lengths to their end. The prompt is read beforehand."""
    decoder = ReplayDecoder(model, drafter, policy, Coupled(), costs, fate=fate)
    last = model.prefill(prompt, features=drafter.needs)
    assert last is not None
    drafter.begin(prompt, lambda done: True)
    decode = lambda ids: "." * len(list(ids))  # noqa: E731
    rows = [
        Row(n, 7, prompt, Limits(frozenset(), length), decode, sampling) for n, length in enumerate(lengths, start=1)
    ]
    stage.synchronize()
    start, steps = time.perf_counter(), 0
    decoder.join(list(rows), last)
    decoder.leave()
    while decoder.rows:
        decoder.step()
        steps += 1
        decoder.leave()
    stage.synchronize()
    seconds = time.perf_counter() - start
    model.forget_rows()
    model.forget_prompt()
    tokens, proposed = sum(lengths), sum(row.proposed for row in rows)
    return Timing(
        ms=1e3 * seconds / max(lengths),
        tokens_per_s=tokens / seconds,
        utilisation=2 * _multiplied(model) * decoder.verified / seconds / stage.matmul_rate,
        steps=steps,
        accepted=sum(row.accepted for row in rows) / max(1, proposed),
        tokens=tokens,
    )


def _multiplied(model: DeviceModel) -> int:
    """Weights that every verified token is multiplied with: all but the table of embeddings."""
    weights = sum(parameter.numel() for parameter in model.module.parameters())
    tied = model.module.config.tie_word_embeddings
    return weights if tied else weights - model.module.get_input_embeddings().weight.numel()


def replayed(stage: Stage) -> dict[str, Any]:
    """7B shape in bf16: regular against suffix drafts, acceptance replayed, b = 1 .. 32, two temperatures."""
    model = stage.open(stage.module("7B"), Room(max(SIZES), 512, 1024))
    costs = _measured(stage, model)
    stage.found["costs"] = costs.as_dict()
    stage.say(
        "| acceptance replayed | b | regular ms/token/seq | speculative | tokens/s | ratio | util. | accepted | even |"
    )
    stage.say("|---|---|---|---|---|---|---|---|---|")
    found = stage.rows
    paths = sorted(TRACES.glob("*.json"))
    names = sorted({path.stem.rsplit("-", 1)[0] for path in paths})
    for b in (4, 1) if stage.dry else SIZES[::-1]:  # the largest first: its room serves the others
        for temperature in (0.8, 0.2):
            pairs = []
            for name in names[:1] if stage.dry else names:
                stage.check()
                trace = Trace.read(TRACES / f"{name}-{temperature}.json", stage)
                sampling = Sampling(temperature, top_p=0.95)
                lengths = [len(answer) for answer in trace.answers[:b]]
                ways: list[tuple[Drafter, Policy]] = [
                    (NoDrafter(), Fixed(0)),
                    (suffix := SuffixDrafter(), Goodput(costs, suffix)),
                ]
                pairs.append([run(stage, model, trace.prompt, lengths, sampling, *w, costs, trace.fate) for w in ways])
            found.append(_row(stage, f"suffix, T = {temperature}", b, pairs, _even(costs, b)))
            found[-1]["temperature"] = temperature
    stage.say("even: the acceptance probability above which one more draft per row pays off, as passes were measured")
    return {"rows": found, "costs": costs.as_dict()}


def _measured(stage: Stage, model: DeviceModel) -> CostTable:
    return CostTable({1: 1.0, 64: 1.5}) if stage.dry else measure(model, context=4096)


def _even(costs: CostTable, b: int) -> float:
    """How much longer a pass takes with a second token for each of ``b`` rows."""
    costs.context = CONTEXT
    return costs.seconds(2 * b) / costs.seconds(b) - 1


def _row(stage: Stage, label: str, b: int, pairs: list[list[Timing]], even: float) -> dict[str, Any]:
    """Several prompts as one: their times and tokens together."""

    def mean(index: int, key: str) -> float:
        values: list[float] = [getattr(pair[index], key) for pair in pairs]
        return sum(values) / len(values)

    ratio = mean(0, "ms") / mean(1, "ms")
    stage.say(
        f"| {label} | {b} | {mean(0, 'ms'):.2f} | {mean(1, 'ms'):.2f} | {mean(1, 'tokens_per_s'):.0f} "
        f"| {ratio:.2f}x | {mean(1, 'utilisation'):.1%} | {mean(1, 'accepted'):.0%} | {even:.0%} |"
    )
    keys = ("ms", "tokens_per_s", "utilisation", "steps", "accepted")
    ways = {name: {key: mean(index, key) for key in keys} for index, name in enumerate(("regular", "speculative"))}
    return {"label": label, "b": b, "ratio": ratio, "break_even": even, **ways}


def draft_model(stage: Stage) -> dict[str, Any]:
    """7B shape with a 0.5B-shaped draft, acceptance forced; time per draft token, and the rate that breaks even."""
    from engine.sampler.drafters.draft_loop import LoopedDraftDrafter

    length, tokens = 4, 3 if stage.dry else 96
    stage.found["length"] = length
    target, draft = stage.open(stage.module("7B")), stage.open(stage.module("0.5B"))
    costs = _measured(stage, target)
    stage.say(f"| draft model, l = {length} | b | ms per draft token | breaks even at | acceptance forced to | ratio |")
    stage.say("|---|---|---|---|---|---|")
    found = stage.rows
    prompt = list(range(1, 65))
    for b in (2,) if stage.dry else (32, 8, 1):
        stage.check()
        lengths, sampling = [tokens] * b, Sampling(0.8, top_p=0.95)
        regular = run(stage, target, prompt, lengths, sampling, NoDrafter(), Fixed(0), costs, forced(0))
        drafter = LoopedDraftDrafter(draft, Coupled())
        timings = {
            rate: run(stage, target, prompt, lengths, sampling, drafter, Fixed(length), costs, forced(rate))
            for rate in (FORCED, 1.0)
        }
        per_draft = _draft_seconds(stage, drafter, prompt, b, length, sampling)
        step = timings[1.0].ms * tokens / timings[1.0].steps
        even = _break_even(step / (regular.ms * tokens / regular.steps), length)
        ratio = regular.ms / timings[FORCED].ms
        stage.say(f"| 0.5B shape | {b} | {1e3 * per_draft:.3f} | {even:.0%} | {FORCED:.0%} | {ratio:.2f}x |")
        found.append({"b": b, "draft_s": per_draft, "break_even": even, "forced": FORCED, "ratio": ratio})
    return {"length": length, "rows": found}


def _draft_seconds(stage: Stage, drafter: Any, prompt: Sequence[int], b: int, length: int, sampling: Sampling) -> float:
    drafter.begin(prompt, lambda done: True)
    limits = Limits(frozenset(), 1000)
    rows = [Row(n, 7, prompt, limits, lambda ids: "", sampling, tokens=[5, 6]) for n in range(1, b + 1)]
    return stage.seconds(lambda: drafter.propose(rows, DraftBudget.of([length] * b))) / length


def _break_even(cost: float, length: int) -> float:
    """The chance per draft at which 1 + a + a^2 + ... tokens make up for a step that costs so much more."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(middle**n for n in range(length + 1)) > cost else (middle, high)
    return high
