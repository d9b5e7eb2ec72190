"""Where to save. Dialogs open beside the event loop: candidates go on streaming while a name is chosen."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.words import tr


def ask_file(parent: QWidget, title: str, folder: str, name: str, then: Callable[[Path], None]) -> QFileDialog:
    """The dialog itself asks before a file that exists is replaced."""
    return _ask(parent, title, folder, name, then)


def ask_folder(parent: QWidget, title: str, folder: str, name: str, then: Callable[[Path], None]) -> QFileDialog:
    """A name for a new folder."""
    dialog = _ask(parent, title, folder, name, then)
    dialog.setLabelText(QFileDialog.DialogLabel.Accept, tr("Export"))
    dialog.setLabelText(QFileDialog.DialogLabel.FileName, tr("Folder name:"))
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite)
    return dialog


def _ask(parent: QWidget, title: str, folder: str, name: str, then: Callable[[Path], None]) -> QFileDialog:
    dialog = QFileDialog(parent, title, folder or str(Path.home()))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setFileMode(QFileDialog.FileMode.AnyFile)
    dialog.selectFile(name)
    dialog.fileSelected.connect(lambda chosen: then(Path(chosen)))
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()
    return dialog
