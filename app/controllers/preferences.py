"""Applies the settings: theme, font, history, proxy and what the window starts with."""

import os
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.controllers.history import HistoryController
from app.dialogs.settings import SettingsDialog
from app.ui.theme import Theme
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError
from engine.session import settings
from engine.session.settings import Settings


class PreferencesController(QObject):
    """``settings`` are those in force; ``changed`` is emitted when they have become others."""

    changed = Signal()

    def __init__(
        self, window: MainWindow, theme: Theme, history: HistoryController, file: Path, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._window, self._theme, self._history, self._file = window, theme, history, file
        self._environment = {name: os.environ.get(name) for name in settings.PROXY_VARIABLES}
        self._dialog: SettingsDialog | None = None
        self.settings = Settings()
        loaded = settings.load(file)
        for notice in loaded.notices:
            window.notice.say(notice, tone="warning")
        self._apply(loaded.settings)
        self._start_with(loaded.settings)
        window.on("settings", self.open)

    def open(self) -> None:
        if self._dialog is None:
            self._dialog = SettingsDialog(self._window, self.settings)
            self._dialog.changed.connect(self._apply)
            self._dialog.finished.connect(self._keep)
            self._dialog.show()
        else:
            self._dialog.raise_()
            self._dialog.activateWindow()

    def close(self) -> None:
        if self._dialog is not None:
            self._dialog.close()

    @Slot(object)
    def _apply(self, chosen: Settings) -> None:
        before, self.settings = self.settings, chosen
        if chosen.theme != before.theme:
            self._theme.force("" if chosen.theme == "system" else chosen.theme)
        if chosen.font_size != before.font_size:
            self._theme.use_font_size(chosen.font_size)
        self._history.keeping = chosen.history
        settings.use_proxy(chosen.proxy, self._environment)
        if chosen.folder and chosen.folder != before.folder:
            self._window.remember("folder", str(Path(chosen.folder).expanduser()))
        self.changed.emit()

    def _start_with(self, chosen: Settings) -> None:
        default = Settings()
        if (chosen.candidates, chosen.sampling) != (default.candidates, default.sampling):
            bar = self._window.bar
            bar.apply(replace(bar.settings(), candidates=chosen.candidates, sampling=chosen.sampling))

    @Slot()
    def _keep(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
        try:
            settings.keep(self.settings, self._file)
        except BasslineError as error:
            self._window.notice.say(str(error))
