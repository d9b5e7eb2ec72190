"""Light and dark: readable, complete, and the system chooses."""

import itertools

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from app.ui.actions import ACTIONS
from app.ui.theme import RESOURCES, Theme, load_colours, style_sheet
from engine.session.states import CANDIDATE_STATES, OUTCOMES, RUN_STATES, TEST_STATES

TEXT = ("text", "muted", "accent", "passed", "failed", "warning", "running")
THEMES = ("light", "dark", "contrast")
CODE = ("keyword", "string", "number", "comment", "function", "builtin", "decorator")


def luminance(colour: QColor) -> float:
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(one: QColor, other: QColor) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_text_can_be_read(name: str) -> None:
    colours = load_colours(name)
    pairs = [*itertools.product(TEXT, ("window", "base", "raised")), *itertools.product(CODE, ("base",))]
    pairs += itertools.product(("text", *CODE), ("added", "removed", "changed"))
    pairs += [("text", f"{kind}_part") for kind in ("added", "removed", "changed")]
    pairs += [
        ("passed", "added"),
        ("failed", "removed"),
        ("warning", "changed"),
        ("text", "selection"),
        ("text", "accent_soft"),
        ("on_accent", "accent"),
        ("keyword", "selection"),
    ]
    poor = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    least = 7 if name == "contrast" else 4.5
    assert not {
        pair: ratio for pair, ratio in poor.items() if ratio < (3 if pair == ("keyword", "selection") else least)
    }


def test_themes_name_the_same_colours() -> None:
    assert len({frozenset(load_colours(name).values) for name in THEMES}) == 1
    assert not load_colours("light").dark
    assert load_colours("dark").dark


@pytest.mark.parametrize("name", THEMES)
def test_the_sheet_has_every_colour_and_file_it_names(name: str, qapp: QApplication) -> None:
    sheet = style_sheet(load_colours(name), qapp.font())
    for rule in sheet.split("{")[1:]:
        for value in rule.split("}")[0].split(";"):
            assert "{" not in value
    for path in (piece.split(")")[0] for piece in sheet.split("url(")[1:]):
        assert (RESOURCES / path).exists()


def test_every_icon_is_there_and_states_differ_in_shape(theme: Theme) -> None:
    tables = (RUN_STATES, CANDIDATE_STATES, TEST_STATES, OUTCOMES)
    names = {display.icon for table in tables for display in table.values()}
    for name in names | {action.icon for action in ACTIONS if action.icon} | {"close", "window", "soft-pass"}:
        image = theme.pixmap(name, "text", 16, 2.0).toImage()
        assert any(image.pixelColor(x, y).alpha() for x in range(32) for y in range(32)), name
    assert len({display.icon for display in CANDIDATE_STATES.values()}) == len(CANDIDATE_STATES)


def test_the_theme_can_change_while_a_window_is_open(theme: Theme) -> None:
    heard = []
    theme.changed.connect(lambda: heard.append(theme.colours.name))
    theme.force("dark")
    theme.force("dark")
    theme.force("light")
    assert heard == ["dark", "light"]
    theme.force("")
