"""Candidates out of the window: to the clipboard, to a file, to a folder, to another editor."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject

from app.clipboard import copy_text
from app.dialogs import places
from app.loading import ModelLoading
from app.running import Running
from app.widgets.main_window import MainWindow
from app.words import tr
from engine.contract import BasslineError
from engine.session import export
from engine.session.run import Candidate


class Saving(QObject):
    """What is copied and written is the candidate's string in the run, never what a widget shows."""

    def __init__(self, window: MainWindow, running: Running, loading: ModelLoading, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._running, self._loading = window, running, loading
        for id, do in (("copy", self.copy), ("save", self.save), ("export", self.export)):
            window.on(id, do)

    @property
    def _candidate(self) -> Candidate | None:
        run = self._running.run
        return run.candidates.get(self._window.page.number) if run else None

    def copy(self) -> None:
        if (candidate := self._candidate) is not None:
            copy_text(candidate.code)
            self._window.status.flash(tr("Copied the code of candidate {number}.").format(number=candidate.number))

    def save(self) -> None:
        run, candidate = self._running.run, self._candidate
        if run is not None and candidate is not None:
            name, code = export.suggested_name(run, candidate.number), candidate.code
            places.ask_file(self._window, self._folder(), name, lambda path: self._save(path, code))

    def export(self) -> None:
        run = self._running.run
        if run is None:
            return
        choice, ready = self._loading.loaded, self._loading.ready
        name = f"bassline-{datetime.now():%Y-%m-%d-%H%M%S}"

        def write(folder: Path, overwrite: bool = False) -> None:
            try:
                files = export.export_run(run, folder, choice, ready, overwrite)
            except export.AlreadyExists as error:
                again = (tr("Replace"), lambda: write(folder, True))
                self._window.notice.say(str(error), tone="warning", choices=[again])
            except BasslineError as error:
                self._window.notice.say(str(error))
            else:
                words = tr("Exported {count} files to {folder}.").format(count=len(files), folder=folder)
                self._saved(folder.parent, words)

        places.ask_folder(self._window, self._folder(), name, write)

    def _folder(self) -> str:
        return self._window.remembered("folder")

    def _save(self, path: Path, code: str) -> None:
        self._try(lambda: export.save(path, code, overwrite=True), path)  # the dialog has asked

    def _try(self, write: Callable[[], object], path: Path) -> None:
        try:
            write()
            self._saved(path.parent, tr("Saved {path}.").format(path=path))
        except BasslineError as error:
            self._window.notice.say(str(error))

    def _saved(self, folder: Path, words: str) -> None:
        self._window.remember("folder", str(folder))
        self._window.status.flash(words)
