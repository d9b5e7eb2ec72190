"""How our pictures look: one ink and a few colours that can be read on a white page and on a dark one."""

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import cast

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from PIL import Image

PAGES = ("#ffffff", "#0d1117")  # what a picture may stand on: it has no ground of its own
INK = "#7a7a7a"
COLOURS = ("#2f81f7", "#c96f10", "#1f9d55", "#b04fd8", "#d9414e", "#1297a6", "#a08312", "#8a6ff0")
# Few enough to be told apart; whoever comes after them is drawn in ink.
WIDTH, HEIGHT = 8.0, 3.4  # inches
DPI = 120
SIZE = 9.0  # points
_LABEL_GAP = 1.35  # lines of text
_PALETTE = 128


def figure(
    rows: int = 1, columns: int = 1, height: float = HEIGHT, *, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row."""
    made = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(made)
    grid = made.subplots(rows, columns, squeeze=False, sharex="col", sharey="row" if share_y else False)
    axes = list(grid.flat)
    for one in axes:
        for side, spine in one.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
        one.tick_params(colors=INK, labelsize=SIZE, labelcolor=INK)
    return made, axes


def name_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Only what is given."""
    for text, write in ((x, axes.set_xlabel), (y, axes.set_ylabel), (title, partial(axes.set_title, loc="left"))):
        if text:
            write(text, color=INK, fontsize=SIZE)


def logarithmic(axes: Axes, axis: str, ticks: Sequence[float]) -> None:
    """Ticks at these values and nowhere else, written as plain numbers."""
    getattr(axes, f"set_{axis}scale")("log")
    line = getattr(axes, f"{axis}axis")
    line.set_major_locator(FixedLocator(ticks))
    line.set_minor_locator(NullLocator())
    line.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))


def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Each line's name beside its end (x, y, name, colour), moved apart where they would touch.

    Call it last: how far apart the ends are depends on the limits of the axes.
    """
    ends = sorted(ends, key=lambda end: end[1])
    labels = [beside(axes, name, colour, (x, y), (6, 0)) for x, y, name, colour in ends]
    settle(axes)  # room is made for them; only their heights change from here on
    heights = [in_points(axes, x, y)[1] for x, y, _, _ in ends]
    for label, height, moved in zip(labels, heights, spread(heights, _LABEL_GAP * SIZE), strict=True):
        label.xyann = (6, moved - height)


def beside(axes: Axes, text: str, colour: str, at: tuple[float, float], offset: tuple[float, float]) -> Annotation:
    """``text``, ``offset`` points from a point of the data; it may stand outside of the axes."""
    return axes.annotate(
        text,
        at,
        offset,
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=SIZE,
        annotation_clip=False,
    )


def settle(axes: Axes) -> None:
    """Lay the figure out, so that ``in_points`` tells where things are."""
    cast(Figure, axes.get_figure()).draw_without_rendering()


def in_points(axes: Axes, x: float, y: float) -> tuple[float, float]:
    across, up = axes.transData.transform((x, y)) * 72 / DPI
    return float(across), float(up)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights, moved as little as it takes to be ``gap`` apart: each clump around its own middle."""
    clumps: list[list[float]] = []  # middle, members
    for height in heights:
        clumps.append([height, 1.0])
        while len(clumps) > 1 and clumps[-1][0] - clumps[-2][0] < gap * (clumps[-1][1] + clumps[-2][1]) / 2:
            (upper, many), (lower, few) = clumps.pop(), clumps.pop()
            clumps.append([(upper * many + lower * few) / (many + few), many + few])
    return [middle + gap * (at - (count - 1) / 2) for middle, count in clumps for at in range(int(count))]


def save(made: Figure, path: Path) -> None:
    """A PNG without a ground, in as many colours as it takes."""
    drawn = BytesIO()
    made.savefig(drawn, transparent=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(drawn).quantize(_PALETTE, method=Image.Quantize.FASTOCTREE)
    picture.save(path, optimize=True, dpi=(DPI, DPI))


def contrast(colour: str, page: str) -> float:
    """Of text on a page, 1 to 21, as WCAG 2.1 defines it."""
    lighter, darker = sorted((_luminance(colour), _luminance(page)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
