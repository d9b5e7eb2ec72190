"""The details behind an error sentence, to read and to copy."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.ui.clipboard import copy_text
from app.ui.theme import monospace
from app.ui.words import tr
from app.widgets.controls import label


class ReportDialog(QDialog):
    """Modeless, so work goes on beside it."""

    def __init__(self, parent: QWidget | None, sentence: str, details: str):
        super().__init__(parent)
        self.setWindowTitle(tr("What happened"))
        self._text = f"{sentence}\n\n{details}".rstrip() + "\n"
        view = QPlainTextEdit(details or sentence)
        view.setAccessibleName(tr("Report"))
        view.setReadOnly(True)
        view.setTabChangesFocus(True)
        view.setFont(monospace())
        view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        buttons = QDialogButtonBox()
        copy = buttons.addButton(tr("Copy report"), QDialogButtonBox.ButtonRole.ActionRole)
        close = buttons.addButton(tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        copy.setAccessibleName(tr("Copy report"))
        close.setAccessibleName(tr("Close"))
        copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(label(sentence, role="heading", wrap=True))
        column.addWidget(view, 1)
        column.addWidget(buttons)
        self.resize(720, 420)

    def _copy(self) -> None:
        copy_text(self._text)


def show_report(parent: QWidget | None, sentence: str, details: str) -> ReportDialog:
    dialog = ReportDialog(parent, sentence, details)
    dialog.finished.connect(dialog.deleteLater)
    dialog.show()
    return dialog
