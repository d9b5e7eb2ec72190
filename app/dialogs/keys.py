"""All actions and their keys, as docs/shortcuts.md has them."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.item_models.table import Cell, TableModel
from app.ui.actions import keys
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.result_table import ResultTable


class KeysDialog(QDialog):
    """Modeless: it can stay open beside the work."""

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        model = TableModel((tr("Key"), tr("Action"), tr("What it does")), self)
        model.show([(Cell(key), Cell(tr(text)), Cell(tr(what), tone="muted")) for key, text, what in keys()])
        buttons = QDialogButtonBox()
        close = buttons.addButton(tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAccessibleName(tr("Close"))
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(ResultTable(theme, model, tr("Keyboard shortcuts")), 1)
        column.addWidget(buttons)
        self.resize(760, 560)
