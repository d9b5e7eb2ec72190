"""With real weights: are the answers with drafts, token for token, the answers without?

    python -m benchmarks.exactness [--precision int8 float32] [-n 1 8] [--temperature 0.2 0.8] [--json FILE]

The coupled rule promises it. Every step guesses ``--ahead`` tokens, worth it or not, so that batch shapes and cuts are
as mixed as they get. Each answer that differs is followed to its first different token, and there the race between
the two tokens is run once more: *gap* is by how much one was ahead of the other (log-probability plus noise, in nats).
Where arithmetic is the same to the bit no gap can matter; where a row's last bits depend on what else is in the batch,
as in float32, only races as close as those bits may end otherwise. *As alone*: the first candidate of n without drafts
is the one that a run of one candidate gives. Nothing is timed, so other programs do not disturb.

Under the rejection rule texts differ by design and only rates can be compared: see ``benchmarks.pass_rates``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

import torch  # noqa: E402

from benchmarks.machine import asked, facts  # noqa: E402
from benchmarks.prompts import PROMPTS  # noqa: E402
from benchmarks.target_models import MEASURED, answers, loaded  # noqa: E402
from engine.contract import BasslineError, Request, Sampling  # noqa: E402
from engine.models.loader import LoadedModel  # noqa: E402
from engine.models.pairing import check_pair  # noqa: E402
from engine.sampler.acceptance import Coupled  # noqa: E402
from engine.sampler.drafters import Drafter, NoDrafter  # noqa: E402
from engine.sampler.drafters.draft_model import DraftModelDrafter  # noqa: E402
from engine.sampler.drafters.ngrams import table_for  # noqa: E402
from engine.sampler.drafters.speculator import speculator_for  # noqa: E402
from engine.sampler.drafters.suffix import SuffixDrafter  # noqa: E402
from engine.sampler.engine import exact_cache_dtype  # noqa: E402
from engine.sampler.policies.fixed import Fixed  # noqa: E402
from engine.sampler.ragged_model import RaggedModel  # noqa: E402
from engine.sampler.sampling import distributions  # noqa: E402
from kernels.philox import TOKEN  # noqa: E402
from kernels.philox.torch import gumbel  # noqa: E402

TOP_P = 0.95


@dataclass(frozen=True)
class Difference:
    """Where a candidate's two answers part: the token's index, and the gap in nats.

    ``at_edge``: one of the two tokens is just inside the nucleus and the other run had it outside, or the reverse; the
    gap, which is taken over all tokens, need not be small then.
    """

    candidate: int
    at: int
    gap: float
    at_edge: bool


@dataclass(frozen=True)
class Case:
    """One prompt's ``n`` answers with drafts of one kind, against those without. ``as_alone``: see above."""

    precision: str
    temperature: float
    n: int
    prompt: str
    drafter: str
    tokens: int
    as_alone: bool
    differences: list[Difference]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    result: dict[str, Any] = {"question": "exactness", "options": asked(options), "machine": facts(), "cases": []}
    try:
        for precision in options.precision:
            for case in cases(precision, options):
                result["cases"].append(asdict(case))
                print(line_of(case), file=sys.stderr)
                if options.json:  # after every case: a run that is cut short keeps what it has
                    Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(table(result)))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exactness", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--draft", default="", help="a draft model, whose guesses are tried as well")
    parser.add_argument("--precision", nargs="+", default=["int8", "float32"])
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("-n", type=int, nargs="+", default=[1, 8], help="candidates")
    parser.add_argument("--temperature", type=float, nargs="+", default=[0.2, 0.8])
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--ahead", type=int, default=4, help="tokens guessed in every step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write everything found to this file")
    return parser.parse_args(arguments)


def cases(precision: str, options: argparse.Namespace) -> Iterator[Case]:
    model = loaded(options.model, precision)
    ragged = RaggedModel(model.module, model.vocabulary, cache_dtype=exact_cache_dtype(model))
    openers = drafters_for(model, options.draft, precision)

    def run(request: Request, drafter: Drafter, ahead: int) -> tuple[list[int], list[list[int]]]:
        ragged.clear()  # what an earlier run has read is not read again, and this one must stand alone
        return answers(model, ragged, request, drafter, Fixed(ahead))

    for temperature, prompt in product(options.temperature, options.prompts):
        sampling = Sampling(temperature, TOP_P, max_tokens=options.max_tokens)
        alone: list[int] = []
        for n in sorted({1, *options.n}):
            request = Request(PROMPTS[prompt], options.seed, n, sampling=sampling)
            ids, plain = run(request, NoDrafter(), 0)
            alone = alone or plain[0]
            if n not in options.n:
                continue
            for name, opener in openers.items():
                _, drafted = run(request, opener(), options.ahead)
                yield Case(
                    precision,
                    temperature,
                    n,
                    prompt,
                    name,
                    sum(map(len, plain)),
                    plain[0] == alone,
                    list(differences(ragged, request, ids, plain, drafted)),
                )


def drafters_for(model: LoadedModel, draft: str, precision: str) -> dict[str, Callable[[], Drafter]]:
    """What opens each kind again: a drafter remembers what was said to its prompt, and would guess it."""
    table = table_for(model.tokenizer)
    openers: dict[str, Callable[[], Drafter]] = {"suffix": lambda: SuffixDrafter(table)}
    if (speculator := speculator_for(model)) is not None:
        openers["speculator"] = lambda: SuffixDrafter(table, speculator)
    if draft:
        smaller = loaded(draft, precision)
        check_pair(model, smaller)
        vocabulary = min(model.vocabulary, smaller.vocabulary)
        ragged = RaggedModel(smaller.module, vocabulary, cache_dtype=exact_cache_dtype(smaller))
        openers["draft model"] = lambda: DraftModelDrafter(ragged, Coupled())
    return openers


def differences(
    ragged: RaggedModel,
    request: Request,
    prompt: Sequence[int],
    plain: Sequence[list[int]],
    drafted: Sequence[list[int]],
) -> Iterator[Difference]:
    for number, one, other in zip(request.numbers, plain, drafted, strict=True):
        if one != other:
            at = next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
            ragged.clear()
            last = ragged.prefill([*prompt, *one[:at]])
            assert last is not None
            yield Difference(number, at, *race(last.logits, request, number, len(prompt) + at, (one[at], other[at])))


def race(
    logits: torch.Tensor, request: Request, candidate: int, position: int, tokens: tuple[int, int]
) -> tuple[float, bool]:
    """How far apart two tokens are behind ``logits`` ``[1, V]``, and whether one of them cannot be drawn there."""
    temperature, ids = request.sampling.temperature, torch.tensor([tokens])
    scores = torch.log_softmax(logits.float() / (temperature or 1.0), -1).gather(1, ids)
    if temperature == 0:
        return abs(float(scores[0, 0] - scores[0, 1])), False
    seed, number, place = (torch.tensor([[value]]) for value in (request.seed, candidate, position))
    scores = scores + gumbel(seed, number, place, ids, TOKEN)
    possible = distributions(logits, request.sampling)
    drawable = set(possible.ids[possible.log_probs.isfinite()].tolist())
    return abs(float(scores[0, 0] - scores[0, 1])), not set(tokens) <= drawable


def line_of(case: Case) -> str:
    return (
        f"{case.precision}, T = {case.temperature}, n = {case.n}, {case.prompt}, {case.drafter}: "
        f"{case.n - len(case.differences)} of {case.n} equal, {case.tokens} tokens"
    )


def table(result: dict[str, Any]) -> Iterable[str]:
    """The lines that are printed: one row per precision, temperature, drafter and n, over all prompts."""
    options, machine = result["options"], result["machine"]
    yield f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}"
    yield (
        f"{options['model']}; prompts {', '.join(options['prompts'])}; at most {options['max_tokens']} tokens, "
        f"top-p {TOP_P}, seed {options['seed']}; coupled rule, {options['ahead']} tokens guessed in every step\n"
    )
    yield (
        "| precision | temperature | drafts | n | answers | tokens | equal | first difference at token | gap, nats "
        "| as alone |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, float, str, int], list[dict[str, Any]]] = {}
    for case in result["cases"]:
        groups.setdefault((case["precision"], case["temperature"], case["drafter"], case["n"]), []).append(case)
    for key, cases in groups.items():
        yield "| " + " | ".join([*map(str, key), *cells(cases)]) + " |"


def cells(cases: Sequence[dict[str, Any]]) -> list[str]:
    total = sum(case["n"] for case in cases)
    parted = [difference for case in cases for difference in case["differences"]]
    close = [difference["gap"] for difference in parted if not difference["at_edge"]]
    gaps = [f"{min(close):.0e} to {max(close):.0e}"] if close else []
    if edges := len(parted) - len(close):
        gaps.append(f"{edges} at the edge of top-p")
    return [
        str(total),
        f"{sum(case['tokens'] for case in cases):,}",
        f"{(total - len(parted)) / total:.1%}",
        f"{min(difference['at'] for difference in parted)}" if parted else "-",
        ", ".join(gaps) or "-",
        f"{sum(case['as_alone'] for case in cases)} of {len(cases)}",
    ]


if __name__ == "__main__":
    sys.exit(main())
