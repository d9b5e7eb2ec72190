"""Any action by its name, and all of them with their keys."""

from PySide6.QtCore import QObject

from app.dialogs.keys import KeysDialog
from app.dialogs.palette import Command, PaletteDialog
from app.ui.action_state import ActionState
from app.ui.actions import ACTIONS
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.main_window import MainWindow, key_text


class PaletteController(QObject):
    """Opens the palette and the table of keys."""

    def __init__(self, window: MainWindow, theme: Theme, parent: QObject | None = None):
        super().__init__(parent)
        self._window, self._theme = window, theme
        window.on("palette", self.open_palette)
        window.on("shortcuts", self.open_keys)

    def open_palette(self) -> None:
        now = self._window.situation or ActionState()
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
        dialog = PaletteDialog(self._theme, commands, self._window)
        dialog.chosen.connect(self._do)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def open_keys(self) -> None:
        dialog = KeysDialog(self._theme, self._window)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

    def _do(self, id: str) -> None:
        self._window.actions_by_id[id].trigger()
