"""Pictures of the window's states, in every theme: ``python -m tests.app.screenshots docs/screenshots [state ...]``."""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QTableView

from app.controllers.testing_consent import RUNNING_EXPLAINED
from app.system.engines import recorded_answers
from app.ui.theme import Theme
from engine.contract import Loading
from engine.scripted import Script, from_texts
from tests.app.doubling import called, press, writes_tests, written
from tests.app.stage import RehearsedRunner, Stage, stage

SIZE = (1280, 720)
SUGGESTED = (
    'assert roman_to_int("III") == 3',
    'assert roman_to_int("IV") == 4',
    'assert roman_to_int("LVIII") == 58',
    'assert roman_to_int("MCMXCIV") == 1994',
    'assert roman_to_int("") == 0',
    'assert roman_to_int("IX") == 8',
)
MEMORY = "Not enough memory for 8 candidates of 512 tokens; finished candidates are kept."


def _script(**options: object) -> Script:
    """Recorded answers, with no time lost before the first of them."""
    return from_texts(
        recorded_answers(), chunk=6, load_stages=(("weights", 1),), prompt_steps=1, speedup=1.9, **options
    )


def _some_ended(on: Stage, count: int) -> bool:
    run = on.controller.run
    return run is not None and sum(candidate.ended for candidate in run.candidates.values()) >= count


def _one(on: Stage, passed: bool) -> int:
    """The first candidate that passed, or that was tested and did not."""
    assert on.controller.run is not None
    candidates = on.controller.run.candidates.items()
    return next(number for number, c in candidates if c.report is not None and c.passed == passed)


def empty(on: Stage) -> None:
    on.write("", "")


def loading(on: Stage) -> None:
    on.window.bar.choose_model("default")
    on.do("generate")
    on.window.loading.show_stage(Loading("download", 77_000_000, 491_400_064))


def preloading(on: Stage) -> None:
    on.window.bar.choose_model("default")
    on.window.bar.model_chosen.emit()
    on.until(lambda: on.controller.loading.stage is not None and on.controller.loading.stage.done > 20)


def reading_the_prompt(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: on.controller.run is not None and on.controller.run.prompt_done > 0)


def generating(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: on.controller.run is not None and on.controller.run.candidates[1].tokens > 45)


def meanwhile(on: Stage) -> None:
    loading(on)
    on.window.loading.offer_meanwhile("Use Qwen2.5-Coder 0.5B Instruct meanwhile")


def partial(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: _some_ended(on, 5))
    on.window.page.choose(_one(on, passed=True))


def testing(on: Stage) -> None:
    on.generate(8)
    on.finish()
    on.settle()


def tested(on: Stage) -> None:
    testing(on)
    on.until(lambda: not on.controller.situation().busy)
    on.do("best")


def stopping(on: Stage) -> None:
    generating(on)
    on.window.actions_by_id["stop"].trigger()


def stopped(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: _some_ended(on, 2))
    on.do("stop")
    on.finish()


def error(on: Stage) -> None:
    on.generate(8)
    on.finish()


def test_log(on: Stage) -> None:
    tested(on)
    on.window.page.choose(_one(on, passed=False))
    on.do("go_to_test_log")


def details(on: Stage) -> None:
    tested(on)
    on.do("go_to_details")


def many(on: Stage) -> None:
    on.generate(32)
    on.until(lambda: _some_ended(on, 20))
    on.do("best")


def compare(on: Stage) -> None:
    tested(on)
    on.do("compare")
    on.window.page.compare.compare_with(_one(on, passed=False))


def compare_unified(on: Stage) -> None:
    compare(on)
    on.window.page.compare.choose_layout("unified")


def tile(on: Stage) -> None:
    tested(on)
    on.do("tile")
    on.window.page.tiles.show_count(4)


def advanced(on: Stage) -> None:
    on.window.actions_by_id["advanced"].setChecked(True)
    field = on.window.bar.advanced.fields["top_k"]
    assert isinstance(field, QLineEdit)
    field.setText("-3")


def follow_up(on: Stage) -> None:
    tested(on)
    on.do("follow_up")
    on.window.prompt.replace_text("Raise ValueError for a letter that is no Roman numeral.")
    for name, text in (("numerals.py", "PAIRS = 13\n" * 90), ("style_guide.md", "Names are nouns.\n" * 40)):
        path = Path(on.home) / name
        path.write_text(text)
        on.window.files_dropped.emit([str(path)])


def none_passed(on: Stage) -> None:
    """Only wrong answers: what can be done next is offered."""
    on.generate(8)
    on.until(lambda: on.controller.run is not None)
    on.until(lambda: not on.controller.situation().busy)


def palette(on: Stage) -> None:
    tested(on)
    on.do("palette")


def keys(on: Stage) -> None:
    on.do("shortcuts")


def closing(on: Stage) -> None:
    generating(on)
    on.do("quit")


def consent(on: Stage) -> None:
    on.generate(8)
    on.finish()
    on.until(lambda: on.window.findChild(QDialog) is not None)


def past(on: Stage) -> None:
    """A run that was stopped, opened from the history."""
    stopped(on)
    on.do("history")
    panel = on.controller.history.panel
    on.wait_until(lambda: panel._model.rowCount() > 0)
    on.controller.history.open(1)


def history(on: Stage) -> None:
    tested(on)
    on.do("history")
    on.wait_until(lambda: on.controller.history.panel._model.rowCount() > 0)


def recovered(on: Stage) -> None:
    on.window.notice.say(
        "Bassline closed unexpectedly: 5 of 8 candidates of “Write a Python function …” had finished and were kept.",
        tone="warning",
        choices=[("Go on", lambda: None), ("Show", lambda: None), ("Discard", lambda: None)],
    )


def question(on: Stage) -> None:
    """Without tests: which result is right."""
    on.controller.runner._open_runner = lambda say: RehearsedRunner(say, behave=called)
    on.write(tests="")
    on.generate(8)
    on.finish()
    on.do("ask")
    on.until(on.controller.questions.strip.isVisible)


def suggested(on: Stage) -> None:
    """Tests by the model, one of them ticked."""
    writes_tests(on, written(*SUGGESTED))
    on.controller.runner._open_runner = lambda say: RehearsedRunner(say, behave=called)
    on.write(tests="")
    on.generate(8)
    on.finish()
    on.do("suggest_tests")
    on.until(on.controller.suggesting.list.isVisible)
    on.do("suggest_tests")
    press(on, Qt.Key.Key_Space, Qt.Key.Key_Down)


def settings(on: Stage) -> None:
    on.do("settings")


def models(on: Stage) -> None:
    on.do("models")
    table = on.window.findChild(QDialog).findChild(QTableView)
    on.wait_until(lambda: table.model().rowCount() > 0, seconds=20)


def servers(on: Stage) -> None:
    on.do("servers")


class State:
    """``play`` brings a stage there; ``script`` and ``options`` are what the stage stands on."""

    def __init__(self, play: Callable[[Stage], None], script: Script | None = None, **options: bool):
        self.play, self.script, self.options = play, script or _script(), options


STATES = {
    "empty": State(empty),
    "loading": State(loading),
    "preloading": State(preloading, replace(_script(), load_stages=(("weights", 40),))),
    "reading-prompt": State(reading_the_prompt, replace(_script(), prompt_steps=6)),
    "generating": State(generating),
    "meanwhile": State(meanwhile),
    "partial": State(partial),
    "testing": State(testing, hold=True),
    "tested": State(tested),
    "none-passed": State(none_passed, from_texts(recorded_answers()[1:2] * 8, chunk=6, prompt_steps=1, speedup=1.9)),
    "stopping": State(stopping),
    "stopped": State(stopped),
    "error": State(error, _script(run_failure="The model gave no number; load it again, or choose another.")),
    "out-of-memory": State(error, _script(run_failure=MEMORY, failure_kind="out-of-memory")),
    "slow-drafts": State(tested, replace(_script(), speedup=0.82)),
    "test-log": State(test_log),
    "details": State(details),
    "many": State(many),
    "compare": State(compare),
    "compare-unified": State(compare_unified),
    "tile": State(tile),
    "advanced": State(advanced),
    "follow-up": State(follow_up),
    "palette": State(palette),
    "keys": State(keys),
    "closing": State(closing),
    "consent": State(consent, sealed=False),
    "history": State(history),
    "past": State(past),
    "recovered": State(recovered),
    "question": State(question),
    "suggested": State(suggested),
    "settings": State(settings),
    "servers": State(servers),
    "models": State(models),
}
THEMES = ("light", "dark", "contrast")


def names() -> list[str]:
    return sorted(f"{state}-{theme}.png" for state in STATES for theme in THEMES)


def take(theme: Theme, state: str, colours: str, folder: Path, home: Path) -> Path:
    """One picture; the window is made again for it."""
    shown = STATES[state]
    theme.force(colours)
    with stage(theme, home / f"{state}-{colours}", shown.script, as_finished=True, **shown.options) as on:
        on.window.resize(*SIZE)
        on.window.remember(RUNNING_EXPLAINED, "yes")
        on.write()
        on.window.show()
        QApplication.processEvents()
        shown.play(on)
        for _ in range(20):
            QApplication.processEvents()
        path = folder / f"{state}-{colours}.png"
        in_few_colours(picture(on), theme).save(str(path), "PNG", 0)  # type: ignore[call-overload]  # the stub says bytes, which Qt refuses
    return path


def picture(on: Stage) -> QImage:
    """The window, and any dialog in front of it as a window manager would place it."""
    result = on.window.grab().toImage()
    for dialog in on.window.findChildren(QDialog):
        if dialog.isVisible():
            shown = dialog.grab()
            painter = QPainter(result)
            place = QPoint((result.width() - shown.width()) // 2, (result.height() - shown.height()) // 2)
            painter.drawPixmap(place, shown)
            painter.setPen(Qt.GlobalColor.gray)
            painter.drawRect(place.x() - 1, place.y() - 1, shown.width() + 1, shown.height() + 1)
            painter.end()
    return result


def in_few_colours(image: QImage, theme: Theme) -> QImage:
    """256 of its colours, the frequent ones first, each some way from the others: letters keep their tint."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    pixels = memoryview(bytes(image.constBits())).cast("I")
    often = [colour for colour, _ in Counter(pixels).most_common()]
    wanted = [*(theme.colours[name].rgb() & 0xFFFFFF for name in theme.colours.values), *(c & 0xFFFFFF for c in often)]
    chosen: dict[int, tuple[int, int, int]] = {}
    for near in (24, 12, 0):  # first far apart, then what room is left for
        for colour in wanted:
            parts = (colour >> 16, colour >> 8 & 255, colour & 255)
            if len(chosen) < 256 and all(sum(map(_apart, parts, other)) > near for other in chosen.values()):
                chosen[colour | 0xFF000000] = parts
    flags = Qt.ImageConversionFlag.ThresholdDither | Qt.ImageConversionFlag.AvoidDither
    return image.convertToFormat(QImage.Format.Format_Indexed8, list(chosen), flags)


def _apart(one: int, other: int) -> int:
    return abs(one - other)


def main(folder: str, *states: str) -> int:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication(["bassline"])
    theme = Theme(application)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["BASSLINE_HOME"] = home
        for state in states or STATES:
            for colours in THEMES:
                path = take(theme, state, colours, Path(folder), Path(home))
                print(f"{path} {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
