"""Two candidates and what differs between them, side by side or in one column."""

import time

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.item_models.candidates import CandidatesModel
from app.item_models.difference import Difference, changed_ranges, difference
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.answer_view import language_of
from app.widgets.controls import label
from app.widgets.difference_pane import DifferencePane
from app.widgets.fields import choice_box
from engine.session.candidate import Candidate

LARGEST = 400_000  # characters of both together; a comparison of more would hold up the window
PAUSE_S = 0.5  # between two looks at a text that still grows


class CompareView(QWidget):
    """On the left the candidate in view, on the right the one that is chosen here."""

    def __init__(self, theme: Theme, model: CandidatesModel, parent: QWidget | None = None):
        super().__init__(parent)
        self._model = model
        self._of = self._set_against = 0  # the candidate in view; the repair that was set against its origin
        self._texts: tuple[str, str] | None = None
        self._compared = 0.0
        self._found: Difference | None = None
        self._other = choice_box(tr("Compare with"), tr("The candidate on the right"), [], width=17)
        self._layout = choice_box(
            tr("Layout of the comparison"),
            tr("Side by side, or removed and added lines in one column"),
            ((tr("side by side"), "split"), (tr("unified"), "unified")),
            width=11,
        )
        self._words = label(tone="muted")
        self._words.setAccessibleName(tr("Difference"))
        self._next = QPushButton(tr("Next difference"))
        self._next.setAccessibleName(tr("Next difference"))
        self._next.setToolTip(tr("Go to the next lines that differ"))
        self._next.setAutoDefault(False)
        self.left = DifferencePane(theme, tr("Candidate in view"))
        self.right = DifferencePane(theme, tr("Candidate compared with"))
        self.unified = DifferencePane(theme, tr("Both candidates in one column"))
        self._panes = QStackedWidget()
        self._lay_out()
        self._link()
        self._other.activated.connect(lambda _: self._look())
        self._layout.activated.connect(lambda _: self._arrange())
        self._next.clicked.connect(self.go_to_next)
        self.setFocusProxy(self.left)

    @property
    def words(self) -> str:
        return self._words.text()

    @property
    def other(self) -> int:
        """The number of the candidate on the right; 0 when there is none."""
        return int(self._other.currentData() or 0)

    def compare_with(self, number: int) -> None:
        index = self._other.findData(number)
        if index >= 0:
            self._other.setCurrentIndex(index)
            self._look()

    def choose_layout(self, layout: str) -> None:
        """``split`` or ``unified``."""
        self._layout.setCurrentIndex(self._layout.findData(layout))
        self._arrange()

    def show_candidate(self, candidate: Candidate) -> None:
        """Something may have changed; texts that still grow are looked at twice a second."""
        self._list_others(candidate)
        other = self._model.candidate(self._model.row_of(self.other))
        settled = candidate.ended and (other is None or other.ended)
        if settled or time.monotonic() - self._compared > PAUSE_S:
            self._look()

    def go_to_next(self) -> None:
        """The next stretch of differing lines; after the last the first."""
        unified = self._panes.currentWidget() is self.unified
        pane = self.unified if unified else self.left
        rows, here = changed_ranges(pane.lines), pane.textCursor().blockNumber()
        if rows:
            pane.go_to_row(next((row for row in rows if row > here), rows[0]))

    def _look(self) -> None:
        self._compared = time.monotonic()
        one = self._model.candidate(self._model.row_of(self._of))
        other = self._model.candidate(self._model.row_of(self.other))
        if one is None or other is None or (one.code, other.code) == self._texts:
            return
        self._texts = one.code, other.code
        if sum(map(len, self._texts)) > LARGEST:
            self._found = None
            self._words.setText(tr("Too large to compare here; save both and use your editor."))
        else:
            self._found = difference(*self._texts)
            self._words.setText(_in_words(self._found))
        found, language = self._found or difference("", ""), language_of(one.block)
        self.left.show_lines(found.left, language)
        self.right.show_lines(found.right, language_of(other.block))
        self.unified.show_lines(found.unified, language)
        self._next.setEnabled(bool(self._found and self._found.differing))

    def _list_others(self, candidate: Candidate) -> None:
        """Every other candidate; the choice stays where it can, and else is the best, or the next that differs."""
        self._of = candidate.number
        run = self._model.run
        others = [n for n in sorted(run.candidates) if n != candidate.number] if run else []
        if candidate.origin.of in others and candidate.number != self._set_against:
            self._set_against = candidate.number  # a repair is first set against the one it repairs
            self._other.clear()
        elif others == [self._other.itemData(row) for row in range(self._other.count())]:
            return
        chosen = self.other
        self._other.clear()
        for number in others:
            self._other.addItem(tr("with candidate {number}").format(number=number), number)
        if candidate.number == self._set_against and candidate.origin.of in others:
            chosen = candidate.origin.of
        if chosen not in others and run is not None:
            distinct = (n for n in others if run.candidates[n].group != candidate.group)
            chosen = self._model.best if self._model.best in others else next(distinct, others[0] if others else 0)
        if chosen in others:
            self._other.setCurrentIndex(others.index(chosen))

    def _arrange(self) -> None:
        self._panes.setCurrentIndex(0 if self._layout.currentData() == "split" else 1)
        self.setFocusProxy(self.left if self._layout.currentData() == "split" else self.unified)

    def _link(self) -> None:
        """Both sides scroll together, down and across."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            one.verticalScrollBar().valueChanged.connect(other.verticalScrollBar().setValue)
            one.horizontalScrollBar().valueChanged.connect(other.horizontalScrollBar().setValue)

    def _lay_out(self) -> None:
        sides = QSplitter()
        sides.setChildrenCollapsible(False)
        sides.setHandleWidth(8)
        sides.addWidget(self.left)
        sides.addWidget(self.right)
        self._panes.addWidget(sides)
        self._panes.addWidget(self.unified)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._other)
        row.addWidget(self._layout)
        row.addWidget(self._words, 1)
        row.addWidget(self._next)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(row)
        column.addWidget(self._panes, 1)


def _in_words(found: Difference) -> str:
    same = len(found.left) - found.differing
    if not found.differing:
        return tr("The same code, {count} lines").format(count=same)
    lines = tr("1 line differs") if found.differing == 1 else tr("{n} lines differ").format(n=found.differing)
    return lines + tr(", {count} are the same").format(count=same)
