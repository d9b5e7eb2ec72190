"""Any action by its name, and all of them with their keys."""

from PySide6.QtCore import QObject

from app.actions import ACTIONS
from app.dialogs.keys import Keys
from app.dialogs.palette import Command, Palette
from app.situation import Situation
from app.theme import Theme
from app.widgets.main_window import MainWindow, key_text
from app.words import tr


class Commanding(QObject):
    """Opens the palette and the table of keys."""

    def __init__(self, window: MainWindow, theme: Theme, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._theme = window, theme
        window.on("palette", self.open_palette)
        window.on("shortcuts", self.open_keys)

    def open_palette(self) -> None:
        now = self._window.situation or Situation()
        commands = [
            Command(
                action.id,
                tr(action.text),
                key_text(self._window.actions_by_id[action.id]),
                tr(action.tip),
                tr(action.blocked(now)),
            )
            for action in ACTIONS
            if action.id != "palette"
        ]
        dialog = Palette(self._theme, commands, self._window)
        dialog.chosen.connect(self._do)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def open_keys(self) -> None:
        dialog = Keys(self._theme, self._window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

    def _do(self, id: str) -> None:
        self._window.actions_by_id[id].trigger()
