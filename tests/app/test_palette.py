"""Every action by its name, and all keys in one place."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QTableView
from pytestqt.qtbot import QtBot

from app.dialogs.keys import KeysDialog
from app.dialogs.palette import PaletteDialog
from app.ui.actions import ACTIONS, keys
from tests.app.stage import Stage


def palette(on: Stage) -> tuple[PaletteDialog, QLineEdit]:
    on.do("palette")
    dialog = on.window.findChild(PaletteDialog)
    assert dialog is not None
    typed = dialog.findChild(QLineEdit)
    assert typed is not None
    return dialog, typed


def test_palette_offers_every_action(on: Stage) -> None:
    dialog, _ = palette(on)
    assert set(dialog.shown) == {action.id for action in ACTIONS} - {"palette"}
    dialog.reject()


def test_a_few_letters_find_it_and_enter_does_it(on: Stage, qtbot: QtBot) -> None:
    dialog, typed = palette(on)
    qtbot.keyClicks(typed, "gen")
    assert dialog.shown[0] == "generate"
    qtbot.keyClick(typed, Qt.Key.Key_Return)
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.outcome == "finished"


def test_what_cannot_be_done_says_why_and_does_nothing(on: Stage, qtbot: QtBot) -> None:
    dialog, typed = palette(on)
    qtbot.keyClicks(typed, "fix")
    assert dialog.shown == ["fix_it"]
    table = dialog.findChild(QTableView)
    assert table is not None
    assert table.model().index(0, 2).data() == "This candidate has not failed a test."
    qtbot.keyClick(typed, Qt.Key.Key_Return)
    assert dialog.isVisible()
    qtbot.keyClick(typed, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_up_and_down_stay_in_the_list(on: Stage, qtbot: QtBot) -> None:
    dialog, typed = palette(on)
    table = dialog.findChild(QTableView)
    assert table is not None
    qtbot.keyClick(typed, Qt.Key.Key_Up)
    assert table.currentIndex().row() == 0
    for _ in range(10):
        qtbot.keyClick(typed, Qt.Key.Key_PageDown)
    assert table.currentIndex().row() == len(dialog.shown) - 1
    dialog.reject()


def test_the_table_of_keys_has_every_key(on: Stage) -> None:
    on.do("shortcuts")
    dialog = on.window.findChild(KeysDialog)
    assert dialog is not None
    table = dialog.findChild(QTableView)
    assert table is not None
    shown = [table.model().index(row, 0).data() for row in range(table.model().rowCount())]
    assert shown == [key for key, _, _ in keys()]
    dialog.close()
    QApplication.processEvents()
