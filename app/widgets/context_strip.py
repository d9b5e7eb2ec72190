"""Below the prompt: what goes to the model together with it, and how long it is."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.controls import label
from app.widgets.flow import FlowLayout
from engine.session.attachments import Attachment


class ContextStrip(QWidget):
    """``removed`` gives the place of an attachment whose chip was pressed; ``unfollowed`` ends a follow-up."""

    removed = Signal(int)
    unfollowed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme = theme
        self._chips: list[Chip] = []
        self._follows = Chip(theme, "follow-up")
        self._follows.setAccessibleName(tr("Start over"))
        self._follows.clicked.connect(self.unfollowed)
        self._follows.hide()
        self._length = label(tone="muted")
        self._length.setAccessibleName(tr("Length of the prompt"))
        self._row = FlowLayout()
        self._row.addWidget(self._follows)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        column.addLayout(self._row)
        column.addWidget(self._length)

    @property
    def length(self) -> str:
        return self._length.text()

    def show_length(self, words: str) -> None:
        self._length.setText(words)

    def show_follow_up(self, words: str) -> None:
        """What the prompt goes on from; empty for nothing."""
        self._follows.say(words, tr("Start over: {words}").format(words=words))
        self._follows.setVisible(bool(words))

    def show_files(self, attachments: Sequence[Attachment]) -> None:
        for chip in self._chips:
            self._row.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self._chips = []
        for place, attachment in enumerate(attachments):
            chip = Chip(self._theme, "attach")
            size = _size(attachment.size)
            tip = tr("Remove {path}").format(path=attachment.path)
            chip.say(f"{attachment.name}, {size}", tip)
            chip.clicked.connect(partial(self.removed.emit, place))
            self._row.addWidget(chip)
            chip.show()
            self._chips.append(chip)


class Chip(QPushButton):
    """One thing that goes along; pressing it takes it away, so it ends in a cross."""

    def __init__(self, theme: Theme, icon: str, parent: QWidget | None = None):
        super().__init__(parent)
        self._theme, self._icon = theme, icon
        self.setProperty("kind", "chip")
        self.setAutoDefault(False)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._paint_icon)
        self._paint_icon()

    def say(self, words: str, tip: str) -> None:
        room = self.fontMetrics().averageCharWidth() * 34
        self.setText(self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, room) + "   ×")
        self.setToolTip(tip)
        self.setAccessibleName(tip)

    def _paint_icon(self) -> None:
        self.setIcon(self._theme.icon(self._icon, "muted"))


def _size(count: int) -> str:
    return tr("{n} bytes").format(n=count) if count < 1000 else f"{count / 1000:,.1f} kB"
