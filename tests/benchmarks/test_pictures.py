"""Pictures from recorded results: the right values in the right places, legible on either page."""

import json
from dataclasses import asdict

import pytest

pytest.importorskip("matplotlib", reason="the extra 'bench' is not installed")

from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from PIL import Image

from benchmarks import pictures
from benchmarks.drawing import COLOURS, DPI, INK, PAGES, SIZE, WIDTH, contrast, figure, in_points, label_ends, spread
from benchmarks.picking.tables import figures
from tests.benchmarks.picking.records import pair, record
from tests.benchmarks.recorded import decode_result


def _of_temperature(result, temperature):
    return [turn for turn in result["turns"] if turn["temperature"] == temperature]


RECORDS = [
    record(str(at), 2, 4, *pair(*times)) for at, times in enumerate([(1.0, 3.0), (2.5, None)] + [(None, None)] * 2)
]
PICKING = {
    "question": "picking",
    "options": {"n": [8]},
    "void": 0,
    "records": RECORDS,
    "figures": figures(RECORDS, [8], [5.0]),
}
STEP = {
    "question": "step",
    "void": True,
    "milliseconds": {
        "1": {"products": 20.0, "attention": 2.0, "after the logits": 1.0, "step": 25.0, "the rest": 2.0},
        "8": {"products": 30.0, "attention": 4.0, "after the logits": 3.0, "step": 36.5, "the rest": -0.5},
    },
}


def test_speed_is_the_median_of_the_means():
    lines = pictures.speed_lines(_of_temperature(decode_result(), 0.8))
    assert lines["goodput"] == ([1, 4], [32.5, 32.5])
    assert lines["assisted"] == ([1], [100.0])


def test_the_contender_that_all_are_held_against_has_the_first_colour():
    result = decode_result()
    assert pictures.colours_of(result)["goodput"] == COLOURS[0]
    result["turns"][0]["timings"] |= {f"other {at}": {} for at in range(6)}
    colours = pictures.colours_of(result)
    assert colours["other 5"] == INK
    assert len(set(colours.values()) - {INK}) == len(COLOURS)


def _runs(*runs):
    """(steps, rows, drafted, accepted) each."""
    return [
        {"timings": {"goodput": {"steps": {"rows": [r] * k, "drafted": [d] * k, "accepted": [a] * k}}}}
        for k, r, d, a in runs
    ]


def test_drafts_are_pooled_over_runs_and_end_where_most_runs_have_ended():
    runs = _runs((16, 4, 8, 4), (16, 2, 2, 1), (64, 1, 3, 3))
    steps, accepted, length = pictures.draft_lines(runs, "goodput")
    assert steps == [4.0, 12.0]
    assert accepted == [pytest.approx(8 / 13)] * 2
    assert length == [pytest.approx(13 / 7)] * 2


def test_steps_without_drafts_have_no_share_of_them():
    assert pictures.draft_lines(_runs((16, 4, 0, 0)), "goodput") == ([], [], [])


def test_everything_is_drawn_and_named(tmp_path, capsys):
    files = []
    picking = PICKING | {"records": [asdict(one) for one in RECORDS]}
    for result in (decode_result(), picking, STEP, {"question": "exactness"}):
        files.append(tmp_path / f"{result['question']}.json")
        files[-1].write_text(json.dumps(result))
    out = tmp_path / "pictures"
    assert pictures.main([*map(str, files), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert {path.name for path in out.iterdir()} == {"speed.png", "drafts.png", "first.png", "step.png"}
    assert said.err == f"{files[-1]}: no picture is drawn of that\n"
    for path in out.iterdir():
        picture = Image.open(path).convert("RGBA")
        assert picture.width == WIDTH * DPI
        assert picture.getpixel((0, 0))[3] == 0  # it has no ground of its own
        assert path.stat().st_size < 60_000


def test_axes_say_what_they_show_and_in_which_unit():
    decode = decode_result()
    names = [
        {axes.get_xlabel() for axes in made.axes} | {axes.get_ylabel() for axes in made.axes}
        for made in (pictures.speed(decode), pictures.drafts(decode), pictures.first(PICKING), pictures.step(STEP))
    ]
    assert names == [
        {"candidates", "ms per token of a candidate", ""},
        {"decode step", "drafts accepted, %", "drafts per candidate", ""},
        {"seconds, tests included", "problems with a candidate that passes, %"},
        {"ms per decode step (void)", "candidates"},
    ]


def test_what_is_void_says_so():
    titles = [axes.get_title(loc="left") for axes in pictures.speed(decode_result()).axes]
    assert titles == ["temperature 0.2 (void)", "temperature 0.8"]
    assert pictures.step(STEP).axes[0].get_xlabel() == "ms per decode step (void)"
    assert pictures.step(STEP | {"void": False}).axes[0].get_xlabel() == "ms per decode step"
    assert "void" not in pictures.first(PICKING).axes[0].get_title(loc="left")


def test_the_curve_rises_when_a_problem_is_solved_and_both_end_together():
    (axes,) = pictures.first(PICKING).axes
    ours, peer = ([tuple(map(float, point)) for point in line.get_xydata()] for line in axes.lines)
    assert ours == [(0, 0), (1, 25), (2.5, 50), (3, 50)]
    assert peer == [(0, 0), (3, 25), (3, 25)]


def test_bars_add_up_and_a_part_that_is_below_zero_is_not_drawn():
    (axes,) = pictures.step(STEP).axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert len(bars) == len(axes.patches)
    assert max(bar.get_x() + bar.get_width() for bar in bars) == 37.0
    assert min(bar.get_width() for bar in bars) == 0.0
    assert [text.get_text() for text in axes.texts] == ["products", "attention", "after the logits", "the rest"]


def test_every_colour_can_be_read_on_both_pages():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    for page in PAGES:
        assert contrast(INK, page) >= 4.2
        assert min(contrast(colour, page) for colour in COLOURS) >= 3.4


def test_names_that_would_touch_are_moved_apart_as_little_as_it_takes():
    assert spread([10.0, 50.0], 12.0) == [10.0, 50.0]
    assert spread([10.0, 14.0], 12.0) == [6.0, 18.0]
    assert spread([10.0, 14.0, 20.0, 90.0], 12.0) == [
        pytest.approx(at) for at in (44 / 3 - 12, 44 / 3, 44 / 3 + 12, 90)
    ]


def test_ends_at_one_height_get_names_one_below_the_other():
    _, (axes,) = figure()
    axes.plot([0, 1], [0, 1])
    label_ends(axes, [(1.0, 0.5, name, INK) for name in ("one", "other")])
    labels = [label for label in axes.texts if isinstance(label, Annotation)]
    heights = [in_points(axes, *label.xy)[1] + label.xyann[1] for label in labels]
    assert abs(heights[0] - heights[1]) >= SIZE
