"""Keeps text that was typed but not sent, and restores it when the window opens again."""

import json
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Slot

from app.controllers.history import HistoryController
from app.controllers.runs import RunController
from app.system.tasks import Task
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError
from engine.session.export import save

EVERY_MS = 2000


class UnsentText(QObject):
    """Prompt and tests outlive the window, however it ends: they are written 2 s after a change at the latest.

    A prompt that was sent is the history's; who keeps no history leaves nothing here either.
    """

    def __init__(
        self,
        window: MainWindow,
        running: RunController,
        history: HistoryController,
        file: Path,
        parent: QObject | None = None,
    ):
        super().__init__(parent)
        self._window, self._running, self._history, self._file = window, running, history, file
        self._written = ""
        self._task = Task(self)
        self._task.failed.connect(window.notice.say)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self._write)
        self._restore()
        for news in (window.prompt.textChanged, window.tests.textChanged, running.began):
            news.connect(self._note)

    def close(self) -> None:
        """Write what is left. One who closes the window no longer reads why that failed."""
        self._timer.stop()
        with suppress(BasslineError, OSError):
            _put(self._file, self._words())

    @Slot()
    def _note(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _write(self) -> None:
        words, file = self._words(), self._file
        if self._task.busy:
            self._timer.start()
        elif words != self._written:
            self._written = words
            self._task.run(lambda: _put(file, words))

    def _words(self) -> str:
        """As they are written; empty when there is nothing to keep."""
        prompt, tests, run = self._window.prompt.text(), self._window.tests.text(), self._running.run
        sent = run is not None and (run.request.prompt, run.tests) == (prompt, tests)
        if sent or not self._history.keeping or not (prompt.strip() or tests.strip()):
            return ""
        return json.dumps({"prompt": prompt, "tests": tests})

    def _restore(self) -> None:
        try:
            self._written = self._file.read_text("utf-8")
            kept = json.loads(self._written)
            prompt, tests = str(kept["prompt"]), str(kept["tests"])
        except (OSError, ValueError, LookupError, TypeError):
            return  # there is none, or it is nothing that was written here
        self._window.prompt.replace_text(prompt)
        self._window.tests.replace_text(tests)


def _put(file: Path, words: str) -> None:
    if words:
        save(file, words, overwrite=True)
    else:
        file.unlink(missing_ok=True)
