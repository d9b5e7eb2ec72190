"""How fast do n answers to one prompt come, against regular decoding, stock ``generate`` and llama.cpp?

    python -m benchmarks.decode [--prompts roman lru] [-n 1 2 4 8 16] [--temperature 0.2 0.8] [--repeat 3] [--json FILE]

All contenders take turns on the same prompt, in one run, so that whatever disturbs the machine disturbs them alike;
each engine sits in a process of its own. Answers are whole (up to ``--max-tokens``). Figures are medians over prompts
and turns. A ratio is the median of each turn's own ratio, with its spread (lowest to highest) behind it. *Peak memory*
is the most that the contender's process held resident while it answered: program, weights and all (llama.cpp has set
aside its memory for the largest n before the first turn; a Python process holds torch, a llama.cpp process does not).
Ours without drafts is always among the contenders, and so is the one that all are held against, ``--against``.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.contenders import LIMITED, NAMES, OURS, Contender, Setting, can, opened  # noqa: E402
from benchmarks.llama import LlamaCpp  # noqa: E402
from benchmarks.machine import QUIET, Watch, asked, facts  # noqa: E402
from benchmarks.prompts import PROMPTS  # noqa: E402
from benchmarks.target_models import MEASURED  # noqa: E402
from engine.contract import BasslineError, Request, Sampling  # noqa: E402

BASELINE = "no draft"
TOP_P = 0.95

Turn = dict[str, Any]  # temperature, n, prompt, repeat, others_load; timings by contender


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    names = list(dict.fromkeys([BASELINE, options.against, *options.contenders]))
    setting = Setting(
        options.model,
        options.draft,
        options.precision,
        max(options.n),
        options.max_tokens,
        options.peer_python,
        options.gguf,
    )
    result: dict[str, Any] = {
        "question": "decode",
        "options": asked(options),
        "machine": facts(),
        "turns": [],
    }
    try:
        with opened(names, setting) as contenders:
            result["peers"] = {c.name: c.engine.about for c in contenders if isinstance(c.engine, LlamaCpp)}
            for contender in contenders:  # what is read and compiled once is nobody's speed
                for n in (n for n in options.n if can(contender.name, n)):
                    contender.run(request_for(options.prompts[0], n, options.temperature[0], 4, seed=0))
            todo, begun = list(product(range(options.repeat), enumerate(cases(options)))), time.monotonic()
            for repeat, (at, case) in todo:
                turn = take_turn(contenders, case, repeat, at, options.max_tokens)
                result["turns"].append(turn)
                print(line_of(turn, len(result["turns"]), len(todo), time.monotonic() - begun), file=sys.stderr)
                if options.json:  # after every turn: a run that is cut short keeps what it has
                    Path(options.json).write_text(json.dumps(result), encoding="utf-8")
    except BasslineError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(tables(result)))
    return 0


def cases(options: argparse.Namespace) -> list[tuple[float, int, str]]:
    return list(product(options.temperature, options.n, options.prompts))


def take_turn(
    contenders: Sequence[Contender], case: tuple[float, int, str], repeat: int, at: int, max_tokens: int
) -> Turn:
    """Everyone who can, one after the other; every second time the other way round."""
    temperature, n, prompt = case
    request = request_for(prompt, n, temperature, max_tokens, seed=repeat)
    able = [contender for contender in contenders if can(contender.name, n)]
    timings, others = {}, 0.0
    for contender in able if (at + repeat) % 2 == 0 else able[::-1]:
        with Watch() as watch:
            timings[contender.name] = asdict(contender.run(request))
        others = max(others, watch.others)
    return {
        "temperature": temperature,
        "n": n,
        "prompt": prompt,
        "repeat": repeat,
        "others_load": others,
        "timings": {contender.name: timings[contender.name] for contender in able},
    }


def line_of(turn: Turn, done: int, of: int, seconds: float) -> str:
    speeds = ", ".join(f"{name} {timing['tokens_per_second'] or 0:.1f}" for name, timing in turn["timings"].items())
    what = f"T = {turn['temperature']}, n = {turn['n']}, {turn['prompt']}: tokens/s {speeds}"
    return f"{done} of {of} after {seconds / 60:.0f} min, {what}"


def request_for(prompt: str, n: int, temperature: float, max_tokens: int, seed: int) -> Request:
    return Request(PROMPTS[prompt], seed, n, sampling=Sampling(temperature, TOP_P, max_tokens=max_tokens))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--draft", default="", help="a draft model")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("-n", type=int, nargs="+", default=[8], help="candidates")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--temperature", type=float, nargs="+", default=[0.2, 0.8])
    parser.add_argument("--repeat", type=int, default=1, help="turns of each contender with each prompt")
    parser.add_argument(
        "--contenders", nargs="+", choices=NAMES, default=[], help="beside the two that are always there"
    )
    parser.add_argument("--against", choices=OURS, default="goodput", help="which of ours all are held against")
    parser.add_argument("--gguf", type=Path, help="for llama.cpp; otherwise the file that the model is made of")
    parser.add_argument(
        "--peer-python",
        type=Path,
        default=Path(".venv-peers/bin/python"),
        help="where `make bench-peers` put llama.cpp",
    )
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    return parser.parse_args(arguments)


def tables(result: dict[str, Any]) -> Iterable[str]:
    """The lines that are printed: for each temperature one table of speeds, and one of drafts."""
    options, machine = result["options"], result["machine"]
    yield f"{machine['cpu']}; Python {machine['python']}; {machine['date']}; commit {machine['commit']}"
    pair = options["model"] + (f" with draft {options['draft']}" if options["draft"] else "")
    yield (
        f"{pair}, precision {options['precision']}; prompts {', '.join(options['prompts'])}; "
        f"at most {options['max_tokens']} tokens, top-p {TOP_P}, {options['repeat']} turn(s) of each"
    )
    yield from (
        f"{name}: {', '.join(f'{key} {value}' for key, value in about.items())}"
        for name, about in result.get("peers", {}).items()
    )
    for temperature in options["temperature"]:
        turns = [turn for turn in result["turns"] if turn["temperature"] == temperature]
        if turns:
            yield from tables_of(temperature, turns, options["against"])
    for name, (most, why) in LIMITED.items():
        if name in options["contenders"] and max(options["n"]) > most:
            yield f"\n{name} is left out above n = {most}: {why}."


def tables_of(temperature: float, turns: Sequence[Turn], against: str) -> Iterable[str]:
    load = max(turn["others_load"] for turn in turns)
    void = "; VOID: the machine was not idle" if load > QUIET else ""
    yield f"\nTemperature {temperature}; load of others at most {load:.2f} cores{void}\n"
    yield (
        "| n | contender | first token, s | ms/token first | last | mean | tokens/s (spread) "
        f"| {against} against it (spread) | peak memory, MiB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    yield from by_row(turns, lambda n, name, mine: speed_row(n, name, mine, against))
    yield ""
    yield "| n | contender | drafts accepted | drafts per row and step | steps without drafts |"
    yield "|---|---|---|---|---|"
    yield from by_row([turn | {"timings": drafting(turn["timings"])} for turn in turns], draft_row)


def by_row(turns: Sequence[Turn], row: Callable[[int, str, list[Turn]], str]) -> Iterable[str]:
    for n in sorted({turn["n"] for turn in turns}):
        of_n = [turn for turn in turns if turn["n"] == n]
        yield from (row(n, name, of_n) for name in of_n[0]["timings"])


def drafting(timings: dict[str, Any]) -> dict[str, Any]:
    return {name: timing for name, timing in timings.items() if timing["draft_length"]}


def speed_row(n: int, name: str, turns: Sequence[Turn], against: str) -> str:
    mine = [turn["timings"][name] for turn in turns]
    ratios = [
        turn["timings"][against]["tokens_per_second"] / turn["timings"][name]["tokens_per_second"]
        for turn in turns
        if turn["timings"][against]["tokens_per_second"] and turn["timings"][name]["tokens_per_second"]
    ]
    cells = [
        middle(mine, "first_token_s", ".2f"),
        *(middle(mine, key, ".1f") for key in ("ms_first", "ms_last", "ms_mean")),
        with_spread(known(mine, "tokens_per_second"), ".1f"),
        with_spread(ratios, ".2f", "x"),
        middle(mine, "peak_mib", ",.0f"),
    ]
    return f"| {n} | {name} | {' | '.join(cells)} |"


def draft_row(n: int, name: str, turns: Sequence[Turn]) -> str:
    mine = [turn["timings"][name] for turn in turns if name in turn["timings"]]
    cells = [middle(mine, "acceptance", ".0%"), middle(mine, "draft_length", ".2f"), middle(mine, "plain_share", ".0%")]
    return f"| {n} | {name} | {' | '.join(cells)} |"


def known(timings: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [timing[key] for timing in timings if timing[key] is not None]


def middle(timings: Sequence[dict[str, Any]], key: str, form: str) -> str:
    values = known(timings, key)
    return format(median(values), form) if values else "-"


def with_spread(values: Sequence[float], form: str, unit: str = "") -> str:
    """Median, then lowest and highest where there is more than one."""
    if len(values) < 2:
        return f"{values[0]:{form}}{unit}" if values else "-"
    return f"{median(values):{form}}{unit} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    sys.exit(main())
