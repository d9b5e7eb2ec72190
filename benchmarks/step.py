"""Where does the time of one decode step go?

    python -m benchmarks.step [-n 1 2 4 8 16] [--steps 60] [--json FILE]

Regular steps of n rows behind a prompt of everyday length, in the int8 of a CPU. A clock around each part of the real
step: the products of the linear layers (which no sampler can do without), attention, and all that follows the logits.
Medians over the steps.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pkgutil import resolve_name
from statistics import median
from typing import Any
from unittest.mock import patch

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.machine import QUIET, asked, facts, others_load  # noqa: E402
from benchmarks.prompts import PROMPTS  # noqa: E402
from benchmarks.target_models import MEASURED, loaded  # noqa: E402
from engine.contract import Request, Sampling  # noqa: E402
from engine.models.loader import LoadedModel  # noqa: E402
from engine.sampler.acceptance import Coupled  # noqa: E402
from engine.sampler.cost_table import CostTable  # noqa: E402
from engine.sampler.decoder import Decoder  # noqa: E402
from engine.sampler.drafters import NoDrafter  # noqa: E402
from engine.sampler.engine import exact_cache_dtype  # noqa: E402
from engine.sampler.policies.fixed import Fixed  # noqa: E402
from engine.sampler.ragged_model import RaggedModel  # noqa: E402
from engine.sampler.row import Row  # noqa: E402
from engine.sampler.stopping import Limits  # noqa: E402

PARTS = {
    "products": ("kernels.int8_linear.native.NativeWeight.product", "kernels.int8_linear.fbgemm.FbgemmWeight.product"),
    "attention": ("engine.sampler.cache.RaggedCache.attend",),
    "after the logits": ("engine.sampler.verdict.HostVerifier.verify",),
}
WARM_UP = 8  # steps that are not counted


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    model = loaded(options.model, "int8", "cpu")
    ragged = RaggedModel(model.module, model.vocabulary, cache_dtype=exact_cache_dtype(model))
    loads, steps = [], {}
    for n in options.n:
        loads.append(others_load())
        steps[n] = list(timed_steps(model, ragged, n, options.steps))
    result = {
        "question": "step",
        "options": asked(options),
        "machine": facts(),
        "others_load": max(loads),
        "void": max(loads) > QUIET,
        "milliseconds": {
            n: {part: median(step[part] for step in many) for part in many[0]} for n, many in steps.items()
        },
        "ratio": {n: median(step["step"] / step["products"] for step in many) for n, many in steps.items()},
    }
    print_table(result)
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("-n", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args(arguments)


def timed_steps(model: LoadedModel, ragged: RaggedModel, n: int, steps: int) -> Iterator[dict[str, float]]:
    """Milliseconds by part, step after step; rows that end early are kept going."""
    request = Request(PROMPTS["roman"], seed=0, candidates=n, sampling=Sampling())
    prompt = model.encode(request)
    decoder = Decoder(ragged, NoDrafter(), Fixed(0), Coupled(), CostTable({1: 1.0}))
    limits = Limits(frozenset(), WARM_UP + steps + 2)
    last = ragged.prefill(prompt)
    assert last is not None
    decoder.join([Row(k, 0, prompt, limits, model.decode, request.sampling) for k in request.numbers], last)
    for step in range(WARM_UP + steps):
        with clocks() as spent:
            start = time.perf_counter()
            decoder.step()
            spent["step"] = time.perf_counter() - start
        if step >= WARM_UP:
            spent["the rest"] = spent["step"] - sum(spent[part] for part in PARTS)
            yield {part: 1e3 * seconds for part, seconds in spent.items()}
    ragged.clear()


@contextmanager
def clocks() -> Iterator[defaultdict[str, float]]:
    """Seconds that pass inside each part."""
    spent: defaultdict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for part, paths in PARTS.items():
            for path in paths:
                stack.enter_context(patch(path, _clocked(resolve_name(path), part, spent)))
        yield spent


def _clocked(function: Callable[..., Any], part: str, spent: defaultdict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] += time.perf_counter() - start

    return timed


def print_table(result: dict[str, Any]) -> None:
    machine = result["machine"]
    print(f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}")
    void = "; VOID: the machine was not idle" if result["void"] else ""
    print(f"{result['options']['model']}, int8; load of others at most {result['others_load']:.2f} cores{void}")
    print("| n | step, ms | products | attention | after the logits | the rest | step / products |")
    print("|---|---|---|---|---|---|---|")
    for n, parts in result["milliseconds"].items():
        cells = [parts[part] for part in ("step", *PARTS, "the rest")]
        print(f"| {n} | {' | '.join(f'{cell:.1f}' for cell in cells)} | {result['ratio'][n]:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
