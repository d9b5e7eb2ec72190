"""A quiet table: icon and tone come from the cells, colours from the theme."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.item_models.table import IconRole, TableModel, ToneRole
from app.ui.theme import Theme


class ResultTable(QTableView):
    """Rows as high as their text; the last column takes what is left."""

    def __init__(self, theme: Theme, model: TableModel, name: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.setModel(model)
        self.setAccessibleName(name)
        self.setItemDelegate(_Toned(theme, self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(True)
        self.setIconSize(QSize(16, 16))
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header = self.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(model.columnCount() - 1, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        theme.changed.connect(self.viewport().update)


class _Toned(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QWidget):
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(  # noqa: N802
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        tone, icon = index.data(ToneRole), index.data(IconRole)
        if tone:
            for role in (QPalette.ColorRole.Text, QPalette.ColorRole.HighlightedText):
                option.palette.setColor(role, self._theme.colours[tone])
        if icon:
            option.icon = self._theme.icon(icon, tone or "text")
            option.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
