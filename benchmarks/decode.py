"""How fast do n answers to one prompt come, against regular decoding and against stock ``generate``?

    python -m benchmarks.decode [--prompt roman] [-n 8] [--max-tokens 200] [--repeat 3] [--json FILE]

All contenders take turns in one process, so that whatever disturbs the machine disturbs them alike; figures are
medians over the turns, with the spread (highest less lowest, as a share of the median) behind them.
"""

import argparse
import json
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.contenders import Contender, OurEngine, Ours, Stock, Timing  # noqa: E402
from benchmarks.machine import QUIET, facts, others_load  # noqa: E402
from engine.contract import ModelChoice, Sampling, Speculation  # noqa: E402

PROMPTS = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
OURS = {
    "ours, no draft": Speculation("none", "fixed:0"),
    "ours, suffix, fixed 4": Speculation("suffix", "fixed:4"),
    "ours, suffix, goodput": Speculation("suffix", "goodput"),
}
BASELINE = "ours, no draft"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    sampling = Sampling(temperature=options.temperature, top_p=0.95, max_tokens=options.max_tokens)
    engine = OurEngine(ModelChoice(options.model, precision=options.precision))
    contenders: list[Contender] = [Ours(name, engine, how) for name, how in OURS.items()]
    if not options.no_stock:
        contenders.append(Stock("stock generate, float32", options.model, "float32"))
    turns, loads = [], []
    for turn in range(options.repeat):
        timings: dict[str, Timing] = {}
        for contender in contenders if turn % 2 == 0 else contenders[::-1]:
            loads.append(others_load())
            timing = timings[contender.name] = contender.run(PROMPTS[options.prompt], options.n, sampling, seed=turn)
            print(f"turn {turn + 1}: {contender.name}: {timing.tokens_per_second:.1f} tokens/s", file=sys.stderr)
        turns.append(timings)
    engine.close()
    result = {
        "question": "decode",
        "options": vars(options),
        "machine": facts(),
        "others_load": max(loads),
        "void": max(loads) > QUIET,
        "turns": [{name: asdict(timing) for name, timing in turn.items()} for turn in turns],
    }
    print_table(result)
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--prompt", choices=PROMPTS, default="roman")
    parser.add_argument("-n", type=int, default=8, help="candidates")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--repeat", type=int, default=3, help="turns of each contender")
    parser.add_argument("--no-stock", action="store_true", help="leave stock generate out")
    parser.add_argument("--json", help="write everything measured to this file")
    return parser.parse_args(arguments)


def print_table(result: dict[str, Any]) -> None:
    options, machine = result["options"], result["machine"]
    print(f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}")
    print(
        f"prompt {options['prompt']}, n = {options['n']}, at most {options['max_tokens']} tokens, "
        f"temperature {options['temperature']}, {options['repeat']} turns"
    )
    void = "; VOID: the machine was not idle" if result["void"] else ""
    print(f"load of others at most {result['others_load']:.2f} cores{void}")
    print("| contender | ms/token first | last | mean | tokens/s (spread) | ratio | drafts accepted |")
    print("|---|---|---|---|---|---|---|")
    for name in result["turns"][0]:
        print(row(name, result["turns"]))


def row(name: str, turns: list[dict[str, dict[str, Any]]]) -> str:
    """One line: medians over the turns; the ratio is the median of each turn's own ratio to the baseline."""
    mine = [turn[name] for turn in turns]
    cells = [f"{median(timing[key] for timing in mine):.1f}" for key in ("ms_first", "ms_last", "ms_mean")]
    speeds = [timing["tokens_per_second"] for timing in mine]
    ratio = median(turn[name]["tokens_per_second"] / turn[BASELINE]["tokens_per_second"] for turn in turns)
    spread = (max(speeds) - min(speeds)) / median(speeds)
    accepted = [timing["acceptance"] for timing in mine if timing["acceptance"] is not None]
    cells += [f"{median(speeds):.1f} ({spread:.0%})", f"{ratio:.2f}x", f"{median(accepted):.0%}" if accepted else "-"]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
