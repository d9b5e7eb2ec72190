"""Pictures of the window's main states, in light and dark: ``python -m tests.app.screenshots docs/screenshots``."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.engines import recorded_answers
from app.theme import Theme
from engine.contract import Loading
from engine.scripted import Script, from_texts
from tests.app.stage import Stage, stage

SIZE = (1280, 720)


def _script(**options: object) -> Script:
    """Recorded answers whose order makes the strip show every kind of state early."""
    return from_texts(recorded_answers(), chunk=6, load_stages=(("weights", 1),), prompt_steps=1, **options)


def empty(on: Stage) -> None:
    pass


def generating(on: Stage) -> None:
    on.generate(8)
    on.until(lambda: on.window.page.number == 1 and on.controller.run.candidates[1].tokens > 45)


def partial(on: Stage) -> None:
    on.window.actions_by_id["test_as_finished"].setChecked(True)
    on.generate(8)
    on.until(lambda: sum(c.ended for c in on.controller.run.candidates.values()) >= 5 if on.controller.run else False)
    on.window.page.choose(next(n for n, c in on.controller.run.candidates.items() if c.passed))


def tested(on: Stage) -> None:
    on.generate(8)
    on.finish()
    on.do("run_tests")
    on.settle()
    on.do("next_passing")


def test_log(on: Stage) -> None:
    tested(on)
    on.window.page.choose(next(n for n, c in on.controller.run.candidates.items() if c.report and not c.passed))
    on.do("go_to_test_log")


def error(on: Stage) -> None:
    on.generate(8)
    on.finish()


def loading(on: Stage) -> None:
    on.window.bar.choose_model("default")
    on.do("generate")
    on.window.loading.show_stage(Loading("download", 77_000_000, 491_400_064))


STATES: dict[str, tuple[Callable[[Stage], None], Script | None]] = {
    "empty": (empty, None),
    "loading": (loading, None),
    "generating": (generating, None),
    "partial": (partial, None),
    "tested": (tested, None),
    "test-log": (test_log, None),
    "error": (error, _script(run_failure="Out of memory after 3 steps; try 4 candidates or fewer tokens.")),
}
THEMES = ("light", "dark")


def names() -> list[str]:
    return sorted(f"{state}-{theme}.png" for state in STATES for theme in THEMES)


def take(theme: Theme, state: str, colours: str, folder: Path, home: Path) -> Path:
    """One picture; the window is made anew for it."""
    play, script = STATES[state]
    theme.force(colours)
    with stage(theme, home / f"{state}-{colours}", script or _script()) as on:
        on.window.resize(*SIZE)
        if state != "empty":
            on.write()
        on.window.show()
        QApplication.processEvents()
        play(on)
        for _ in range(20):
            QApplication.processEvents()
        path = folder / f"{state}-{colours}.png"
        on.window.grab().save(str(path), "PNG", 0)
    return path


def main(folder: str) -> int:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication(["bassline"])
    theme = Theme(application)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        for state in STATES:
            for colours in THEMES:
                path = take(theme, state, colours, Path(folder), Path(home))
                print(f"{path} {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
