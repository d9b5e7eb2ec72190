"""Messages come and go above the editors, and nothing below them moves; what is said is said in whole words."""

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from app.ui.theme import Theme
from app.widgets.status_line import levels
from engine.contract import Loading
from tests.app.stage import Stage

LONG = "The disk of the folder {} is full; remove models that you do not need, or choose another folder. ".format(
    "/home/somebody/" + "a-long-name-without-spaces" * 8
)


def places(window: QWidget, *besides: QWidget) -> dict[str, QRect]:
    """Where every widget is that is seen and is none of ``besides``."""
    found: dict[str, QRect] = {}
    for widget in window.findChildren(QWidget):
        if widget.isVisible() and not any(other is widget or other.isAncestorOf(widget) for other in besides):
            found[f"{type(widget).__name__} {id(widget):x}"] = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return found


def settle() -> None:
    for _ in range(5):
        QApplication.processEvents()


@pytest.fixture(params=[(1280, 720, 0), (1000, 640, 0), (1000, 640, 18)], ids=["usual", "small", "small, large font"])
def sized(request: pytest.FixtureRequest, open_stage: Callable[..., Stage], theme: Theme) -> Iterator[Stage]:
    width, height, points = request.param
    on = open_stage()
    theme.use_font_size(points)
    on.window.resize(width, height)
    on.write()
    settle()
    yield on
    theme.use_font_size(0)


def test_no_message_moves_what_is_below_it(sized: Stage) -> None:
    window = sized.window
    before = places(window, window._messages)
    assert len(before) > 40

    def same() -> None:
        settle()
        now = places(window, window._messages)
        assert {name: (before[name], now.get(name)) for name in before if before[name] != now.get(name)} == {}

    for sentence in ("Short.", LONG, LONG * 6):
        window.notice.say(sentence, "details", choices=[("One way", lambda: None), ("Another way", lambda: None)])
        same()
        window.notice.say(sentence, tone="warning")
        same()
        window.notice.hide()
        same()
    window.loading.begin("A model with quite a long name, 1.5B, int8")
    same()
    window.loading.show_stage(Loading("download", 77_000_000, 491_400_064))
    same()
    window.loading.offer_meanwhile("Use Qwen2.5-Coder 0.5B Instruct meanwhile", "It is on this computer.")
    same()
    assert window.loading.rect().contains(window.loading._cancel.geometry())
    assert window.loading._bar.toolTip() == "77 of 491 MB, 15 %"
    window.notice.say("And a message beside it.")
    same()
    window.notice.hide()
    assert window.loading.isVisible()  # it has waited for its place
    window.loading.hide()
    same()
    sized.controller.history._strip.show_run("A prompt " * 30, "2026-05-17 14:03")
    same()
    sized.controller.history._strip.hide()
    same()


def test_what_goes_along_with_the_prompt_moves_nothing_but_the_prompts_end(sized: Stage) -> None:
    window = sized.window
    before, top = places(window, window.editors, window.context), window.prompt.mapTo(window, QPoint(0, 0))
    window.context.show_follow_up("Follows candidate 3")
    settle()
    assert places(window, window.editors, window.context) == before
    assert window.prompt.mapTo(window, QPoint(0, 0)) == top
    assert window.context.mapTo(window, QPoint(0, 0)).y() >= top.y() + window.prompt.height()
    window.context.show_follow_up("")
    settle()
    assert places(window, window.editors, window.context) == before


def test_a_run_that_loads_its_model_and_fails_moves_nothing(sized: Stage) -> None:
    window = sized.window
    before = places(window.bar, window._messages) | places(window.editors, window._messages)
    sized.generate(2)
    seen = set()
    while sized.controller.situation().busy:
        seen.add(window.loading.isVisible())
        assert places(window.bar, window._messages) | places(window.editors, window._messages) == before
        sized.steps(1)
    assert seen == {True, False}
    assert places(window.bar, window._messages) | places(window.editors, window._messages) == before


def test_of_two_messages_the_sentence_is_seen_and_the_other_one_waits(on: Stage) -> None:
    window = on.window
    window.loading.begin("model")
    window.notice.say("Something happened.")
    assert window.notice.isVisible()
    assert not window.loading.isVisible()
    assert not window.loading.isHidden()
    window.notice.hide()
    assert window.loading.isVisible()
    window.loading.hide()


def test_a_long_message_has_the_rest_in_its_details(on: Stage) -> None:
    notice = on.window.notice
    details = next(b for b in notice.findChildren(QPushButton) if b.text() == "Details")
    notice.say("Short.")
    settle()
    assert not details.isVisible()
    notice.say(LONG * 5)
    settle()
    assert notice.sentence == LONG * 5
    assert details.isVisible()
    assert notice._sentence.toolTip() == LONG * 5
    assert len(notice._sentence.lines) == 2
    notice.say("Short again.")
    settle()
    assert not details.isVisible()
    assert notice._sentence.lines == ["Short again."]


WORDS = (
    "Stopping   |   12 of 64 finished, 3 passed, 5 being tested   |   first token 0.4 s   |   486 tok/s   |   "
    "1.9x regular decoding"
)
MODEL = "a-repository-with-a-very-long-name-1.5b-instruct   |   draft small   |   cpu   |   int8   |   slower"


@pytest.mark.parametrize("points", [0, 14, 24])
@pytest.mark.parametrize("width", [1000, 1100, 1280, 1600, 2400])
def test_the_status_line_ends_where_a_part_ends(on: Stage, theme: Theme, points: int, width: int) -> None:
    status = on.window.status
    theme.use_font_size(points)
    try:
        on.window.resize(width, 800)
        settle()
        for model in ("small", MODEL, "x" * 300):
            for words in (WORDS, "Reading the prompt: 1,234 of 8,192 tokens", "Waiting for the model"):
                status.show_run(words)
                status.show_model(model)
                status.offer("Switch drafts off", "because", lambda: None)
                settle()
                run, beside = status.shown
                assert run in levels(words)[1:]  # something is always said of the run
                assert beside in levels(model)
                taken = sum(map(status.fontMetrics().horizontalAdvance, (run, beside)))
                assert taken + status._offer.width() <= status.width()
                for part, words_of_it in ((status._run, run), (status._model, beside)):
                    assert part.width() >= status.fontMetrics().horizontalAdvance(words_of_it)
                    assert status.rect().contains(part.geometry())
                assert not (run + beside).endswith(("…", "..."))
                assert status._run.toolTip() == ("" if run == words else words)
                assert status._model.toolTip() == ("" if beside == model else model)
                assert status._run.accessibleDescription() == words
    finally:
        theme.use_font_size(0)


def test_what_was_done_is_said_before_all_else(on: Stage) -> None:
    status = on.window.status
    status.show_run(WORDS)
    status.flash(f"Saved /home/somebody/{'x' * 400}/code.py.", "Saved code.py.", "Saved.")
    assert status.shown[1] == "Saved code.py."
    assert status._model.toolTip().startswith("Saved /home")
    status.flash("Copied the code of candidate 3.")
    assert status.shown[1] == "Copied the code of candidate 3."
    status._end_flash()
    assert status.shown[1] == "No model loaded"
