"""Which layers of isolation held while the tests ran: one line each, with icon, name and sentence."""

from collections.abc import Collection, Mapping

from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import label

ICON = 14


class IsolationView(QWidget):
    """One row for each layer; a layer that holds less than it should has another sign and tone."""

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme = theme
        self._shown: tuple[dict[str, str], frozenset[str]] = ({}, frozenset())
        self._signs: list[tuple[QLabel, bool]] = []
        self.setAccessibleName(tr("Isolation"))
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(2, 0, 0, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(1)
        self._grid.setColumnStretch(2, 1)
        theme.changed.connect(self._paint)

    @property
    def words(self) -> list[str]:
        """Every layer as a sentence."""
        return [f"{name.capitalize()}: {sentence}" for name, sentence in self._shown[0].items()]

    def show_isolation(self, isolation: Mapping[str, str], weak: Collection[str]) -> None:
        """``isolation``: name -> sentence; ``weak``: names of those that hold less than they should."""
        shown = dict(isolation), frozenset(weak)
        if shown == self._shown:
            return
        self._shown = shown
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self._signs = []
        for row, (name, sentence) in enumerate(isolation.items()):
            holds = name not in weak
            sign, words = label(), label(sentence, tone="muted" if holds else "warning", wrap=True)
            sign.setAccessibleName(tr("holds") if holds else tr("weak"))
            self._signs.append((sign, holds))
            for column, widget in enumerate((sign, label(tr(name.capitalize())), words)):
                self._grid.addWidget(widget, row, column)
        self._paint()
        self.setVisible(bool(isolation))

    def _paint(self) -> None:
        for sign, holds in self._signs:
            icon, tone = ("passed", "passed") if holds else ("tests-error", "warning")
            sign.setPixmap(self._theme.pixmap(icon, tone, ICON, self.devicePixelRatio()))
