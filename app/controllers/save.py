"""Candidates out of the window: to the clipboard, to a file, to a folder, to another editor."""

import shlex
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QUrl
from PySide6.QtGui import QDesktopServices

from app.controllers.runs import RunController
from app.dialogs import places
from app.ui.clipboard import copy_text
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError
from engine.session import export
from engine.session.candidate import Candidate
from engine.session.run import Run


class SaveController(QObject):
    """What is copied and written is the candidate's string in the run, never what a widget shows.

    ``editor`` is a command line; ``{file}`` in it, or its end, is the file's path. Empty: what the system opens such
    files with.
    """

    def __init__(self, window: MainWindow, running: RunController, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._running = window, running
        self.editor = ""
        for id, do in (
            ("copy", self.copy),
            ("save", self.save),
            ("save_with_tests", self.save_with_tests),
            ("export", self.export),
            ("export_json", self.export_json),
            ("open_in_editor", self.open_in_editor),
        ):
            window.on(id, do)

    def copy(self) -> None:
        if (current := self._current()) is not None:
            copy_text(current[1].code)
            self._window.status.flash(tr("Copied the code of candidate {number}.").format(number=current[1].number))

    def save(self) -> None:
        if (current := self._current()) is not None:
            run, candidate = current
            name, code = export.suggested_name(run, candidate.number), candidate.code

            def write(path: Path, overwrite: bool) -> list[Path]:
                return [export.save(path, code, overwrite=True)]  # the dialog has asked

            places.ask_file(self._window, tr("Save code"), self._folder(), name, lambda path: self._write(path, write))

    def save_with_tests(self) -> None:
        if (current := self._current()) is not None:
            run, candidate = current

            def write(folder: Path, overwrite: bool) -> list[Path]:
                return export.export_with_tests(run, candidate.number, folder, overwrite)

            self._ask_folder(tr("Save code and tests to a folder"), f"candidate-{candidate.number}", write)

    def export(self) -> None:
        run = self._running.run
        if run is not None:

            def write(folder: Path, overwrite: bool) -> list[Path]:
                return export.export_run(run, folder, overwrite)

            self._ask_folder(tr("Export run to a folder"), _dated_name(), write)

    def export_json(self) -> None:
        run = self._running.run
        if run is not None:

            def write(path: Path, overwrite: bool) -> list[Path]:
                return [export.export_json(run, path, overwrite=True)]  # the dialog has asked

            name = f"{_dated_name()}.json"
            places.ask_file(
                self._window, tr("Export run to a file"), self._folder(), name, lambda path: self._write(path, write)
            )

    def open_in_editor(self) -> None:
        """A copy: what is changed there stays there."""
        current = self._current()
        if current is None:
            return
        run, candidate = current
        folder = Path(tempfile.gettempdir()) / f"bassline-{run.name}"
        try:
            path = export.save(folder / export.suggested_name(run, candidate.number), candidate.code, overwrite=True)
        except BasslineError as error:
            self._window.notice.say(str(error))
            return
        if not self._start_editor(path):
            words = tr("No editor could be started for {path}; set the editor command in the settings.")
            self._window.notice.say(words.format(path=path), tone="warning")

    def _start_editor(self, path: Path) -> bool:
        if not self.editor.strip():
            return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
        try:
            program, *arguments = shlex.split(self.editor)
        except ValueError:  # a quote that is not closed
            return False
        if "{file}" not in self.editor:
            arguments.append("{file}")
        started = QProcess.startDetached(program, [argument.replace("{file}", str(path)) for argument in arguments])
        return bool(started[0] if isinstance(started, tuple) else started)

    def _current(self) -> tuple[Run, Candidate] | None:
        run = self._running.run
        candidate = run.candidates.get(self._window.page.number) if run else None
        return (run, candidate) if run and candidate else None

    def _folder(self) -> str:
        return self._window.remembered("folder")

    def _ask_folder(self, title: str, name: str, write: Callable[[Path, bool], list[Path]]) -> None:
        places.ask_folder(self._window, title, self._folder(), name, lambda path: self._write(path, write))

    def _write(self, path: Path, write: Callable[[Path, bool], list[Path]], overwrite: bool = False) -> None:
        """Say what was written, or why not; what is there already is replaced only after a word from the user."""
        try:
            files = write(path, overwrite)
        except export.AlreadyExists as error:
            again = (tr("Replace"), lambda: self._write(path, write, overwrite=True))
            self._window.notice.say(str(error), tone="warning", choices=[again])
        except BasslineError as error:
            self._window.notice.say(str(error))
        else:
            self._window.remember("folder", str(path.parent))
            shorter = [tr("Saved {name}.").format(name=path.name), tr("Saved.")]
            words = tr("Saved {path}.").format(path=path)
            if files != [path]:
                words = tr("Saved {count} files to {folder}.").format(count=len(files), folder=path)
            self._window.status.flash(words, *shorter)


def _dated_name() -> str:
    return f"bassline-{datetime.now():%Y-%m-%d-%H%M%S}"
