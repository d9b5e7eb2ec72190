"""How fast do n answers to one prompt come, against regular decoding and against stock ``generate``?

    python -m benchmarks.decode [--prompts roman lru] [-n 1 2 4 8 16] [--temperature 0.8] [--repeat 3] [--json FILE]

All contenders take turns on the same prompt in one process, so that whatever disturbs the machine disturbs them alike.
Answers are whole (up to ``--max-tokens``). Figures are medians over prompts and turns; a ratio is the median of each
turn's own ratio to regular decoding, its spread (lowest to highest) behind it.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.contenders import Contender, LlamaCpp, OurEngine, Ours, Stock, Timing  # noqa: E402
from benchmarks.machine import QUIET, facts, others_load  # noqa: E402
from benchmarks.prompts import PROMPTS  # noqa: E402
from engine.contract import ModelChoice, Sampling, Speculation  # noqa: E402

OURS = {
    "no draft": Speculation("none", "fixed:0"),
    "goodput": Speculation("auto", "goodput"),
    "suffix": Speculation("suffix", "goodput"),
    "draft model": Speculation("draft-model", "goodput"),
    "hybrid": Speculation("hybrid", "goodput"),
    "bass": Speculation("auto", "bass"),
    "fixed 4": Speculation("auto", "fixed:4"),
    "goodput, rejection": Speculation("auto", "goodput", "rejection"),
    "suffix, rejection": Speculation("suffix", "goodput", "rejection"),
    "draft model, rejection": Speculation("draft-model", "goodput", "rejection"),
    "hybrid, rejection": Speculation("hybrid", "goodput", "rejection"),
}
STOCK = {"stock float32": "float32", "stock int8": "int8"}
LLAMA = "llama.cpp"
BASELINE = "no draft"

Turn = dict[str, Timing]  # by contender


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    engine = OurEngine(ModelChoice(options.model, options.draft, precision=options.precision))
    contenders = open_contenders(options, engine)
    turns: dict[int, list[Turn]] = {n: [] for n in options.n}
    loads = []
    for repeat in range(options.repeat):
        for n, prompt in ((n, prompt) for n in options.n for prompt in options.prompts):
            turn: Turn = {}
            for contender in contenders if len(turns[n]) % 2 == 0 else contenders[::-1]:
                loads.append(others_load())
                turn[contender.name] = contender.run(PROMPTS[prompt], n, sampling(options), seed=repeat)
            turns[n].append(turn)
            speeds = ", ".join(f"{name} {timing.tokens_per_second:.1f}" for name, timing in turn.items())
            print(f"turn {repeat + 1}, n = {n}, {prompt}: tokens/s {speeds}", file=sys.stderr)
    engine.close()
    for contender in contenders:
        if isinstance(contender, LlamaCpp):
            contender.close()
    result = {
        "question": "decode",
        "options": vars(options) | {"gguf": str(options.gguf), "peer_python": str(options.peer_python)},
        "peers": [contender.about for contender in contenders if isinstance(contender, LlamaCpp)],
        "machine": facts(),
        "others_load": max(loads),
        "void": max(loads) > QUIET,
        "turns": {n: [{name: asdict(t) for name, t in turn.items()} for turn in many] for n, many in turns.items()},
    }
    print_tables(result)
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def sampling(options: argparse.Namespace) -> Sampling:
    return Sampling(temperature=options.temperature, top_p=0.95, max_tokens=options.max_tokens)


def open_contenders(options: argparse.Namespace, engine: OurEngine) -> list[Contender]:
    names = options.contenders if BASELINE in options.contenders else [BASELINE, *options.contenders]
    return [open_contender(name, options, engine) for name in names]


def open_contender(name: str, options: argparse.Namespace, engine: OurEngine) -> Contender:
    if name in STOCK:
        return Stock(name, options.model, STOCK[name])
    if name == LLAMA:
        return LlamaCpp(name, options.model, options.peer_python, options.gguf, max(options.n), options.max_tokens)
    return Ours(name, engine, OURS[name])


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--draft", default="", help="a draft model")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("-n", type=int, nargs="+", default=[8], help="candidates")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--repeat", type=int, default=1, help="turns of each contender with each prompt")
    parser.add_argument("--contenders", nargs="+", choices=[*OURS, *STOCK, LLAMA], default=["goodput"])
    parser.add_argument("--gguf", type=Path, help="the model's file, for llama.cpp")
    parser.add_argument(
        "--peer-python",
        type=Path,
        default=Path(".venv-peers/bin/python"),
        help="where `make bench-peers` put llama.cpp",
    )
    parser.add_argument("--json", help="write everything measured to this file")
    return parser.parse_args(arguments)


def print_tables(result: dict[str, Any]) -> None:
    options, machine = result["options"], result["machine"]
    print(f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}")
    pair = options["model"] + (f" with draft {options['draft']}" if options["draft"] else "")
    print(
        f"{pair}; prompts {', '.join(options['prompts'])}; at most {options['max_tokens']} tokens, "
        f"temperature {options['temperature']}, top-p 0.95, {options['repeat']} turn(s) of each"
    )
    void = "; VOID: the machine was not idle" if result["void"] else ""
    print(f"load of others at most {result['others_load']:.2f} cores{void}")
    print("| n | contender | ms/token first | last | mean | tokens/s | ratio (spread) | accepted | l | plain steps |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n, turns in result["turns"].items():
        for name in turns[0]:
            print(row(n, name, turns))


def row(n: int, name: str, turns: list[dict[str, dict[str, Any]]]) -> str:
    """One line: medians over prompts and turns. ``l``: drafts verified per row and step, on average."""
    mine = [turn[name] for turn in turns]

    def middle(key: str, form: str) -> str:
        known = [timing[key] for timing in mine if timing[key] is not None]
        return format(median(known), form) if known else "-"

    ratios = sorted(turn[name]["tokens_per_second"] / turn[BASELINE]["tokens_per_second"] for turn in turns)
    cells = [str(n), name, *(middle(key, ".1f") for key in ("ms_first", "ms_last", "ms_mean", "tokens_per_second"))]
    cells.append(f"{median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    cells += [middle("acceptance", ".0%"), middle("draft_length", ".2f"), middle("plain_share", ".0%")]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
