"""Repairs of different answers and fresh candidates: one batch over the shared prompt, or one pass after another?

    python -m benchmarks.shared_repairs [--model NAME] [-n 4] [--repeat 7] [--json FILE]

``-n`` answers are generated; then as many fresh candidates and one repair of each answer, once as one batch and once as
passes of their own (the fresh ones, then repair by repair), in turns. *known*: the answers were generated just before,
as in a search; *cold*: the engine has forgotten them. Both ways give the same texts, which is checked; given are the
seconds of each way and, repetition by repetition, separate / together; of the clock, and of the processor's time, which
others disturb less.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.machine import asked, facts, others_load  # noqa: E402
from benchmarks.our_engine import OurEngine  # noqa: E402
from benchmarks.prompts import PROMPTS  # noqa: E402
from engine.contract import CandidateFinished, ModelChoice, Request, RunFinished, Sampling, Turn  # noqa: E402

FAILED = "The code above fails this test:\n\n```\nassert f(0) == 1, where f(0) returned None\n```\n\nWrite it again."
Texts = dict[int, str]
Way = Callable[[OurEngine, Request], tuple[float, int, Texts]]  # seconds, tokens read, what was said


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    engine = OurEngine(ModelChoice(options.model, precision="int8", device="cpu"))
    result: dict[str, Any] = {"question": "shared repairs", "options": asked(options), "machine": facts(), "pairs": []}
    result["load"] = others_load()
    for scene in ("known", "cold"):
        for at in range(options.repeat):
            pair = measured_pair(engine, options, at, scene)
            result["pairs"].append(pair)
            print(pair, file=sys.stderr)
            if options.json:
                Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
    engine.close()
    print("\n".join(table(result["pairs"])))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shared_repairs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--prompt", choices=PROMPTS, default="lru")
    parser.add_argument("-n", type=int, default=4, help="answers, and fresh candidates")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write everything found to this file")
    return parser.parse_args(arguments)


def measured_pair(engine: OurEngine, options: argparse.Namespace, at: int, scene: str) -> dict[str, Any]:
    """Both ways of one repetition, which of them is first by turns."""
    sampling = Sampling(max_tokens=options.max_tokens)
    answers = Request(PROMPTS[options.prompt], seed=at, candidates=options.n, sampling=sampling)
    wrong = texts_of(engine, answers)[2]
    first = options.n + 1
    openings: dict[int, tuple[Turn, ...]] = {
        first + options.n + k: (Turn("assistant", text), Turn("user", FAILED))
        for k, (_, text) in enumerate(sorted(wrong.items()))
    }
    request = replace(answers, candidates=2 * options.n, first_candidate=first, openings=openings)
    ways: Sequence[tuple[str, Way]] = [("together", together), ("separate", separate)]
    found: dict[str, Any] = {"scene": scene, "seed": at}
    answered = []
    for name, way in ways if at % 2 else reversed(ways):
        engine.rest()
        if scene == "known":
            engine.run(answers)
        before = time.process_time()
        found[f"{name}_s"], found[f"{name}_read"], texts = way(engine, request)
        found[f"{name}_cpu_s"] = time.process_time() - before
        answered.append(texts)
    if answered[0] != answered[1]:
        raise SystemExit("The two ways gave different texts.")
    ratios = {"ratio": "s", "cpu_ratio": "cpu_s"}
    return found | {name: found[f"separate_{unit}"] / found[f"together_{unit}"] for name, unit in ratios.items()}


def together(engine: OurEngine, request: Request) -> tuple[float, int, Texts]:
    return texts_of(engine, request)


def separate(engine: OurEngine, request: Request) -> tuple[float, int, Texts]:
    """The fresh ones as a pass, and every repair as one, as where a run has one prompt for all."""
    fresh = [number for number in request.numbers if number not in request.openings]
    asked_apart = [replace(request, candidates=len(fresh), openings={})]
    for number in request.openings:
        asked_apart.append(replace(request.asked_of(number), candidates=1, first_candidate=number))
    seconds, read, texts = zip(*(texts_of(engine, each) for each in asked_apart), strict=True)
    return sum(seconds), sum(read), {number: text for part in texts for number, text in part.items()}


def texts_of(engine: OurEngine, request: Request) -> tuple[float, int, Texts]:
    """Seconds, tokens read, and what was said."""
    events = engine.run(request)
    ended = events[-1]
    assert isinstance(ended, RunFinished)
    assert ended.metrics is not None
    texts = {event.candidate: event.text for event in events if isinstance(event, CandidateFinished)}
    return ended.metrics.total_s, ended.metrics.tokens_read or 0, texts


def table(pairs: Sequence[dict[str, Any]]) -> list[str]:
    lines = ["| answers | together, s | separate, s | separate / together | the same, processor | tokens read |"]
    lines.append("|---|---|---|---|---|---|")
    for scene in ("known", "cold"):
        own = [pair for pair in pairs if pair["scene"] == scene]
        times = [f"{median(pair[f'{way}_s'] for pair in own):.2f}" for way in ("together", "separate")]
        read = [f"{median(pair[f'{way}_read'] for pair in own):.0f}" for way in ("together", "separate")]
        spreads = [spread([pair[name] for pair in own]) for name in ("ratio", "cpu_ratio")]
        lines.append(f"| {scene} | {' | '.join(times + spreads)} | {read[0]} and {read[1]} |")
    return lines


def spread(ratios: Sequence[float]) -> str:
    """Median, least and greatest."""
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
