"""Do drafts, or int8, change how often an answer passes?

    python -m benchmarks.pass_rates [--tasks 20] [-n 8] [--minutes 60] [--ways ...] [--json FILE]

HumanEval's problems, asked of the same model in several ways, with the same seeds; every answer is tested in the
runner's boxes. The rejection rule promises the same distribution, not the same text, so a rate is all that can be
compared; int8 promises neither. *Interval*: 95%, binomial (Wilson), for these very problems; answers are drawn
independently within each problem, whose rates differ, so it is rather too wide than too narrow. *Against the first*:
difference of rates, paired by problem, with the 95% interval over problems. Every step that guesses verifies four
tokens, worth it or not. Nothing is timed, so other programs do not disturb.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Any

from engine.device import prepare_environment
from engine.runner.verdicts import Verdict

prepare_environment()  # before torch is imported

from benchmarks.humaneval_problems import Problem, chosen, problems  # noqa: E402
from benchmarks.humaneval_verdicts import reports  # noqa: E402
from benchmarks.machine import asked, facts  # noqa: E402
from benchmarks.our_engine import OurEngine  # noqa: E402
from benchmarks.target_models import MEASURED  # noqa: E402
from engine.contract import (  # noqa: E402
    BasslineError,
    CandidateFinished,
    ModelChoice,
    Request,
    Sampling,
    Speculation,
)
from engine.selection.code_blocks import solution  # noqa: E402

WAYS = {
    "int8, no drafts": ("int8", Speculation("none", "fixed:0")),
    "int8, drafts, coupled": ("int8", Speculation("auto", "fixed:4")),
    "int8, drafts, rejection": ("int8", Speculation("auto", "fixed:4", "rejection")),
    "float32, no drafts": ("float32", Speculation("none", "fixed:0")),
}
Z = NormalDist().inv_cdf(0.975)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    result: dict[str, Any] = {"question": "pass rates", "options": asked(options), "machine": facts(), "problems": {}}
    try:
        tasks = chosen(problems(), options.tasks)
        engines = {
            precision: OurEngine(ModelChoice(options.model, options.draft, precision=precision))
            for precision in dict.fromkeys(WAYS[way][0] for way in options.ways)
        }
        end = time.monotonic() + 60 * options.minutes
        for problem in tasks:
            if time.monotonic() > end:
                print(f"the time is used up before {problem.name}", file=sys.stderr)
                break
            passed = result["problems"][problem.name] = ask(problem, engines, options)
            print(f"{problem.name}: {', '.join(f'{way} {sum(it)}' for way, it in passed.items())}", file=sys.stderr)
            if options.json:  # after every problem: a run that is cut short keeps what it has
                Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
        for engine in engines.values():
            engine.close()
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(table(result)))
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pass_rates", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--draft", default="", help="a draft model")
    parser.add_argument("--tasks", nargs="+", default=["20"], help="so many, spread evenly; or names of problems")
    parser.add_argument("-n", type=int, default=8, help="answers to each problem, each way")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no further problem is begun")
    parser.add_argument("--json", type=Path, help="write everything found to this file")
    return parser.parse_args(arguments)


def ask(problem: Problem, engines: dict[str, OurEngine], options: argparse.Namespace) -> dict[str, list[bool]]:
    """Which of the n answers passed, by way."""
    sampling = Sampling(options.temperature, max_tokens=options.max_tokens)
    codes: dict[str, list[str]] = {}
    for way in options.ways:
        precision, speculation = WAYS[way]
        engine = engines[precision]
        engine.rest()  # no way may guess from what another one said
        request = Request(problem.asked, options.seed, options.n, sampling=sampling, speculation=speculation)
        ended = [event for event in engine.run(request) if isinstance(event, CandidateFinished)]
        codes[way] = [solution(event.text).code for event in sorted(ended, key=lambda event: event.candidate)]
    different = sorted({code for codes_of_way in codes.values() for code in codes_of_way})
    found = reports({str(at): (code, problem.tests) for at, code in enumerate(different)})
    passed = {code: found[str(at)].verdict == Verdict.PASS for at, code in enumerate(different)}
    return {way: [passed[code] for code in codes_of_way] for way, codes_of_way in codes.items()}


def interval(passed: int, of: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share: it stays inside 0 and 1, and holds where hardly any or nearly all passed."""
    share, spread = passed / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(one: Sequence[Sequence[bool]], other: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Mean over problems of the one way's rate less the other's, and half the width of its 95% interval."""
    gaps = [mean(mine) - mean(theirs) for mine, theirs in zip(one, other, strict=True)]
    return mean(gaps), Z * stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.inf


def table(result: dict[str, Any]) -> Iterable[str]:
    """The lines that are printed: one row per way."""
    options, machine, found = result["options"], result["machine"], list(result["problems"].values())
    yield f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}"
    yield (
        f"{options['model']}; {len(found)} problems of HumanEval, {options['n']} answers each; temperature "
        f"{options['temperature']}, top-p 0.95, at most {options['max_tokens']} tokens, seed {options['seed']}\n"
    )
    yield "| way | passed | of | rate | interval | against the first |"
    yield "|---|---|---|---|---|---|"
    if not found:
        return
    first = [problem[options["ways"][0]] for problem in found]
    for at, way in enumerate(options["ways"]):
        mine = [problem[way] for problem in found]
        passed, total = sum(map(sum, mine)), sum(map(len, mine))
        low, high = interval(passed, total)
        middle, half = difference(mine, first)
        against = f"{middle:+.1%} ± {half:.1%}" if at and math.isfinite(half) else "-"
        yield f"| {way} | {passed} | {total} | {passed / total:.1%} | {low:.1%} to {high:.1%} | {against} |"


if __name__ == "__main__":
    sys.exit(main())
