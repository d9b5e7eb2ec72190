"""Numbers are typed freely: what cannot be is marked and said, and never changed behind a person's back."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.controllers.run_settings import RunSettings
from app.widgets.fields import NumberField
from engine.contract import BadRequest, ModelChoice, Sampling, Speculation
from tests.app.stage import Stage


def field(qtbot: QtBot, **options: object) -> NumberField:
    result = NumberField("Max tokens", "tip", 1, 100, 50, **options)
    qtbot.addWidget(result)
    return result


@pytest.mark.parametrize("typed", ["0", "101", "abc", "1.5", "", "-3", "1e3"])
def test_what_is_no_value_stays_as_it_was_typed_and_is_refused_with_a_sentence(qtbot: QtBot, typed: str) -> None:
    box = field(qtbot)
    box.setText(typed)
    assert box.text() == typed
    assert box.complaint == f"Max tokens must be a whole number from 1 to 100, not “{typed}”."
    assert box.toolTip() == box.complaint
    assert box.property("tone") == "error"
    with pytest.raises(BadRequest, match="Max tokens must be"):
        box.value()
    box.setText("100")
    assert (box.value(), box.property("tone"), box.toolTip()) == (100, "", "tip")


def test_empty_means_what_the_hint_says(qtbot: QtBot) -> None:
    box = field(qtbot, hint="off")
    box.setText(" ")
    assert box.value() is None


def test_a_decimal_may_have_a_comma(qtbot: QtBot) -> None:
    box = NumberField("Temperature", "", 0, 10, 0.8, 0.1)
    qtbot.addWidget(box)
    box.setText("1,25")
    assert box.value() == 1.25


def test_up_and_down_step_within_the_range(qtbot: QtBot) -> None:
    box = NumberField("Temperature", "", 0, 1, 0.9, 0.1)
    qtbot.addWidget(box)
    for _ in range(3):
        qtbot.keyClick(box, Qt.Key.Key_Up)
    assert box.text() == "1"
    qtbot.keyClick(box, Qt.Key.Key_Down)
    assert box.text() == "0.9"


def test_generate_says_what_is_wrong_and_starts_nothing(on: Stage) -> None:
    on.window.bar._max_tokens.setText("many")
    on.do("generate")
    assert on.window.notice.sentence.startswith("Max tokens must be a whole number from 1 to ")
    assert on.window.bar._max_tokens.text() == "many"
    assert on.controller.run is None


def test_the_bar_gives_back_what_it_was_given(on: Stage) -> None:
    given = RunSettings(
        "/some/folder",
        "smollm2-135m",
        "float32",
        24,
        Sampling(1.2, 0.9, 40, 300, (), 0.05, 1.1, 0.5, -0.5, "block"),
        Speculation("suffix", "fixed:4", "rejection"),
        2.5,
        7,
        "first",
        6,
        "Be brief.",
    )
    on.window.bar.apply(given)
    assert on.window.bar.settings() == given
    on.window.bar.apply(RunSettings())
    assert on.window.bar.settings() == RunSettings()


def test_a_policy_that_is_not_in_the_list_is_kept(on: Stage) -> None:
    given = RunSettings(speculation=Speculation(policy="fixed:7"))
    on.window.bar.apply(given)
    assert on.window.bar.settings().speculation.policy == "fixed:7"


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("default", ModelChoice()),
        ("http://localhost:8000/v1", ModelChoice("default", server="http://localhost:8000/v1")),
        ("https://host/v1#coder", ModelChoice("coder", server="https://host/v1")),
    ],
)
def test_a_server_is_an_address(typed: str, choice: ModelChoice) -> None:
    assert RunSettings(typed).choice == choice


def test_advanced_settings_are_closed_until_asked_for(on: Stage) -> None:
    assert not on.window.bar.advanced.isVisible()
    on.do("advanced")
    assert on.window.bar.advanced.isVisible()
