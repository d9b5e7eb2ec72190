"""Pictures of what was measured.

    python -m benchmarks.pictures FILE.json [FILE.json ...] [--out docs/pictures]

Reads what ``decode``, ``humaneval`` and ``step`` wrote with ``--json``, and draws what there is to draw of each:

    decode     speed.png    ms per token against the number of candidates, for every contender
               drafts.png   drafts accepted, and drafts per candidate, over the steps of a run
    humaneval  first.png    share of problems with a candidate that passes, against seconds
    step       step.png     where the time of one decode step goes

A run that was not on an idle machine is marked *void* in its picture, as in its table.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Any

if find_spec("matplotlib") is None:
    sys.exit("Pictures are drawn by matplotlib; install it with: pip install -e '.[bench]'")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.drawing import (
    COLOURS,
    INK,
    SIZE,
    beside,
    figure,
    in_points,
    label_ends,
    logarithmic,
    name_axes,
    save,
    settle,
)
from benchmarks.machine import QUIET

Result = dict[str, Any]
Line = tuple[list[float], list[float]]
STEPS = 8  # decode steps that one point of drafts.png stands for
FEWEST = 0.5  # of the runs must still be going on for a point to be drawn
TICKS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 50, 70, 100, 150, 200, 300, 500)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="written by decode, humaneval or step")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args(arguments)
    for file in options.files:
        result = json.loads(file.read_text(encoding="utf-8"))
        drawings = PICTURES.get(result.get("question", ""), {})
        for name, draw in drawings.items():
            save(draw(result), options.out / name)
            print(options.out / name)
        if not drawings:
            print(f"{file}: no picture is drawn of that", file=sys.stderr)
    return 0


def speed(result: Result) -> Figure:
    """One panel per temperature; names once, beside the last."""
    temperatures = temperatures_of(result)
    colours = colours_of(result)
    made, panels = figure(columns=len(temperatures))
    drawn = []
    for axes, temperature in zip(panels, temperatures, strict=True):
        turns = [turn for turn in result["turns"] if turn["temperature"] == temperature]
        lines = speed_lines(turns)
        for name, (n, ms) in lines.items():
            is_ours = name == result["options"]["against"]
            width, layer = (2.4, 3) if is_ours else (1.4, 2)
            axes.plot(n, ms, color=colours[name], marker="o", markersize=3.5, linewidth=width, zorder=layer)
        counts = sorted({turn["n"] for turn in turns})
        logarithmic(axes, "x", counts)
        values = [value for _, ms in lines.values() for value in ms]
        logarithmic(axes, "y", [tick for tick in TICKS if 0.7 * min(values) <= tick <= 1.4 * max(values)])
        name_axes(axes, x="candidates", title=f"temperature {temperature}{void_of(turns)}")
        drawn = [(n[-1], ms[-1], name, colours[name]) for name, (n, ms) in lines.items()]
    name_axes(panels[0], y="ms per token of a candidate")
    label_ends(panels[-1], drawn)
    return made


def speed_lines(turns: Sequence[Result]) -> dict[str, Line]:
    """(n, median over turns of the mean ms per token) of each contender."""
    lines: dict[str, Line] = {}
    for n in sorted({turn["n"] for turn in turns}):
        of_n = [turn["timings"] for turn in turns if turn["n"] == n]
        for name in of_n[0]:
            x, y = lines.setdefault(name, ([], []))
            x.append(n)
            y.append(median(timings[name]["ms_mean"] for timings in of_n))
    return lines


def drafts(result: Result) -> Figure:
    """Columns are temperatures; a line per number of candidates, of the contender that all are held against."""
    temperatures, counts = temperatures_of(result), sorted({turn["n"] for turn in result["turns"]})
    shown = sorted({counts[0], counts[len(counts) // 2], counts[-1]})
    made, panels = figure(rows=2, columns=len(temperatures), height=4.6)
    top, bottom = panels[: len(temperatures)], panels[len(temperatures) :]
    ends: list[tuple[float, str, str]] = []
    for column, temperature in enumerate(temperatures):
        turns = [turn for turn in result["turns"] if turn["temperature"] == temperature]
        ends = []
        for n, colour in zip(shown, COLOURS, strict=False):
            steps, accepted, length = draft_lines(
                [turn for turn in turns if turn["n"] == n], result["options"]["against"]
            )
            if steps:
                top[column].plot(steps, [100 * share for share in accepted], color=colour, linewidth=1.6)
                bottom[column].plot(steps, length, color=colour, linewidth=1.6)
                ends.append((accepted[-1], f"n = {n}", colour))
        name_axes(top[column], title=f"temperature {temperature}{void_of(turns)}")
        name_axes(bottom[column], x="decode step")
    top[0].set_ylim(0, 100)
    bottom[0].set_ylim(bottom=0)
    name_axes(top[0], y="drafts accepted, %")
    name_axes(bottom[0], y="drafts per candidate")
    edge = top[-1].get_xlim()[1]  # runs end at different steps: their names stand in one column
    label_ends(top[-1], [(edge, 100 * share, name, colour) for share, name, colour in ends])
    return made


def draft_lines(turns: Sequence[Result], name: str) -> tuple[list[float], list[float], list[float]]:
    """Steps, share of drafts accepted, drafts per row and step: pooled over the runs, and over ``STEPS`` steps each.

    A point ends where fewer than half of the runs go on, or nothing was guessed.
    """
    runs = [turn["timings"][name]["steps"] for turn in turns if turn["timings"][name]["steps"]]
    sums = [tuple(map(sum, zip(*at, strict=True))) for at in columns(runs)]
    steps, accepted, length = [], [], []
    for at in range(0, len(sums), STEPS):
        rows, guessed, stayed, going = map(sum, zip(*sums[at : at + STEPS], strict=True))
        if going < FEWEST * len(runs) * STEPS or not guessed:
            continue
        steps.append(at + STEPS / 2)
        accepted.append(stayed / guessed)
        length.append(guessed / rows)
    return steps, accepted, length


def columns(runs: Sequence[Result]) -> Iterator[list[tuple[int, int, int, int]]]:
    """Step by step: rows, drafted, accepted and a 1 of every run that has such a step."""
    of_runs = [zip(run["rows"], run["drafted"], run["accepted"], [1] * len(run["rows"]), strict=True) for run in runs]
    for at in zip_longest(*of_runs):
        yield [one for one in at if one is not None]


def first(result: Result) -> Figure:
    """Steps, not slopes: a problem is solved at a moment."""
    made, (axes,) = figure()
    ends, curves = [], result["figures"]["curves"]
    last = max(points[-1][0] for points in curves.values())
    for (side, points), colour in zip(curves.items(), COLOURS, strict=False):
        seconds, shares = zip(*points, strict=True)
        x, y = [0.0, *seconds, last], [0.0, *(100 * share for share in shares), 100 * shares[-1]]
        axes.step(x, y, where="post", color=colour, linewidth=1.6)
        ends.append((last, y[-1], side, colour))
    axes.set_xlim(0, last)
    axes.set_ylim(0, 100)
    many = len(result["records"])
    void = " (void)" if result["void"] else ""
    title = f"{many} problems of HumanEval, {max(result['options']['n'])} candidates{void}"
    name_axes(axes, x="seconds, tests included", y="problems with a candidate that passes, %", title=title)
    label_ends(axes, ends)
    return made


def step(result: Result) -> Figure:
    """Bars of one step by number of candidates, cut into its parts."""
    made, (axes,) = figure(height=2.8)
    by_n = {int(n): parts for n, parts in result["milliseconds"].items()}
    parts = [part for part in next(iter(by_n.values())) if part != "step"]
    names = [str(n) for n in by_n]
    begun = [0.0] * len(names)
    longest = max(by_n, key=lambda n: sum(by_n[n][part] for part in parts))
    for part, colour in zip(parts, COLOURS, strict=False):
        lengths = [max(0.0, of_n[part]) for of_n in by_n.values()]
        axes.barh(names, lengths, left=begun, color=colour, height=0.62)
        begun = [one + length for one, length in zip(begun, lengths, strict=True)]
    name_axes(axes, x="ms per decode step" + (" (void)" if result["void"] else ""), y="candidates")
    above_bar(axes, {part: max(0.0, by_n[longest][part]) for part in parts}, list(by_n).index(longest))
    return made


def above_bar(axes: Axes, parts: dict[str, float], bar: int) -> None:
    """Each part's name above its stretch of one bar, in its colour; moved right where stretches are short."""
    settle(axes)
    begun, free = 0.0, 0.0
    for (part, length), colour in zip(parts.items(), COLOURS, strict=False):
        x = in_points(axes, begun, bar)[0]
        place = max(x, free)
        beside(axes, part, colour, (begun, bar + 0.31), (place - x, SIZE))
        begun, free = begun + length, place + 0.6 * SIZE * len(part)


def temperatures_of(result: Result) -> list[float]:
    return sorted({turn["temperature"] for turn in result["turns"]})


def colours_of(result: Result) -> dict[str, str]:
    """The one that all are held against comes first; those beyond the colours there are get ink."""
    names = {name: None for turn in result["turns"] for name in turn["timings"]}
    order = [result["options"]["against"], *(name for name in names if name != result["options"]["against"])]
    return dict(zip_longest(order, COLOURS[: len(order)], fillvalue=INK))


def void_of(turns: Sequence[Result]) -> str:
    return " (void)" if any(turn["others_load"] > QUIET for turn in turns) else ""


PICTURES: dict[str, dict[str, Callable[[Result], Figure]]] = {
    "decode": {"speed.png": speed, "drafts.png": drafts},
    "picking": {"first.png": first},
    "step": {"step.png": step},
}


if __name__ == "__main__":
    sys.exit(main())
