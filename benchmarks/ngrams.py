"""What does a model mostly write next? Counts n-grams in its answers to everyday prompts, for ``resources/ngrams``.

    python -m benchmarks.ngrams [--model NAME] [--samples 12] [--answers FILE] OUT.npz

The prompts are in ``ngram_prompts.txt``; none of them is one that a benchmark measures. Answers take an hour or so on
two cores and are kept in FILE as they come, so that a run goes on where an earlier one ended. How far a guess can be
trusted is measured by halves: counted in one half of the prompts, judged by the answers to the other.
"""

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

import numpy as np  # noqa: E402

from benchmarks.target_models import MEASURED, answers, loaded  # noqa: E402
from engine.contract import Request, Sampling  # noqa: E402
from engine.models.loader import LoadedModel  # noqa: E402
from engine.sampler.drafters.ngrams import CLASSES, EMPTY, LONGEST, Ngrams  # noqa: E402
from engine.sampler.engine import exact_cache_dtype  # noqa: E402
from engine.sampler.ragged_model import RaggedModel  # noqa: E402

PROMPTS = Path(__file__).with_name("ngram_prompts.txt")
SEED = 7
LEAST = 2  # times that a context must have been seen
PROBES = 128

Answers = tuple[list[int], list[list[int]]]  # a prompt's ids, and those of each answer
Context = tuple[int, ...]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    model = loaded(options.model)
    found: list[Answers] = []
    for found in answered(model, PROMPTS.read_text(encoding="utf-8").splitlines(), options):
        tokens = sum(len(answer) for _, many in found for answer in many)
        print(f"{len(found)} prompts, {tokens:,} tokens", file=sys.stderr)
    right = reliability([(found[::2], found[1::2]), (found[1::2], found[::2])])
    contexts, following, shares = table(found)
    ids = np.unique(following)[:: max(1, len(np.unique(following)) // PROBES)].astype(np.int64)
    texts = np.array(model.tokenizer.convert_ids_to_tokens(ids.tolist()))
    Ngrams(contexts, following, shares, right, ids, texts).save(options.out)
    print(f"{len(following):,} contexts in {options.out}, {options.out.stat().st_size / 1e6:.1f} MB")
    print("right, by length of context and class of share:")
    for length, row in enumerate(right, start=1):
        print(f"  {length}: {' '.join(f'{share:.2f}' for share in row)}")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ngrams", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--samples", type=int, default=12, help="answers to each prompt")
    parser.add_argument("--max-tokens", type=int, default=320)
    parser.add_argument("--answers", type=Path, default=Path("answers.json"), help="where answers are kept")
    return parser.parse_args(arguments)


def answered(model: LoadedModel, prompts: list[str], options: argparse.Namespace) -> Iterator[list[Answers]]:
    """All answers so far, after each prompt."""
    found: list[Answers] = json.loads(options.answers.read_text()) if options.answers.exists() else []
    yield found
    ragged = RaggedModel(model.module, model.vocabulary, cache_dtype=exact_cache_dtype(model))
    for prompt in prompts[len(found) :]:
        request = Request(prompt, SEED, options.samples, sampling=Sampling(max_tokens=options.max_tokens))
        found.append(answers(model, ragged, request))
        part = options.answers.with_suffix(".part")
        part.write_text(json.dumps(found))
        os.replace(part, options.answers)
        yield found


def counted(found: Iterable[Answers]) -> dict[Context, Counter[int]]:
    """What followed each context of 1 to ``LONGEST`` tokens, and how often."""
    counts: defaultdict[Context, Counter[int]] = defaultdict(Counter)
    for before, token in places(found):
        for length in range(1, LONGEST + 1):
            counts[before[-length:]][token] += 1
    return counts


def places(found: Iterable[Answers]) -> Iterator[tuple[Context, int]]:
    """Every token of every answer, and the ``LONGEST`` tokens before it."""
    for prompt, many in found:
        for answer in many:
            line = [*prompt[-LONGEST:], *answer]
            for at in range(LONGEST, len(line)):
                yield tuple(line[at - LONGEST : at]), line[at]


def table(found: Iterable[Answers]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, following tokens and classes of share, as ``Ngrams`` has them.

    A context that says no more than its own end does is left out: the end is looked up instead.
    """
    best: dict[Context, tuple[int, int]] = {}
    for context, followers in counted(found).items():
        total = followers.total()
        if total >= LEAST:
            token, most = followers.most_common(1)[0]
            # Pulled towards nothing: two of two is less than fifty of fifty.
            best[context] = token, int(CLASSES * (most + 0.5) / (total + 2))
    kept = [context for context in sorted(best) if best.get(context[1:]) != best[context]]
    contexts = np.full((len(kept), LONGEST), EMPTY, dtype=np.uint32)
    for row, context in enumerate(kept):
        contexts[row, LONGEST - len(context) :] = context
    following = np.array([best[context][0] for context in kept], dtype=np.uint32)
    return contexts, following, np.array([best[context][1] for context in kept], dtype=np.uint8)


def reliability(halves: list[tuple[list[Answers], list[Answers]]]) -> np.ndarray:
    """Share of right guesses ``[LONGEST, CLASSES]``; of each pair the first is counted, the second judges."""
    right, judged = np.zeros((LONGEST, CLASSES)), np.zeros((LONGEST, CLASSES))
    nothing = np.zeros((LONGEST, CLASSES), dtype=np.float32)
    for counted_in, judged_by in halves:
        guesses = Ngrams(*table(counted_in), nothing, np.zeros(0), np.zeros(0))
        for before, token in places(judged_by):
            if found := guesses.next(before):
                guess, habit = found
                judged[habit.context - 1, habit.share] += 1
                right[habit.context - 1, habit.share] += guess == token
    return ((right + 0.5) / (judged + 2)).astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
