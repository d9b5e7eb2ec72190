"""The candidates: a strip of tabs, and one page that shows the chosen one in four ways."""

from collections.abc import Mapping
from functools import lru_cache

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from app.item_models.candidates import CandidatesModel
from app.item_models.details import details
from app.item_models.table import TableModel
from app.theme import Theme
from app.widgets.candidate_tabs import CandidateTabs
from app.widgets.code_view import CodeView, Place
from app.widgets.controls import ActionButton, label
from app.widgets.result_table import ResultTable
from app.widgets.test_log import TestLog
from engine.selection.code_blocks import CodeBlock, parse_python
from engine.session.run import Candidate

CODE, ANSWER, TEST_LOG, DETAILS = range(4)


@lru_cache(maxsize=256)
def _untagged(block: CodeBlock) -> str:
    """The language of a block without a tag: Python, this program's default, unless it is prose."""
    return "python" if block.fenced or parse_python(block.code) else ""


class CandidatePage(QWidget):
    """Only the candidate in view has an editor; the others are text in the run and cost nothing."""

    chosen = Signal(int)  # the number of the candidate now in view

    def __init__(
        self, theme: Theme, actions: Mapping[str, QAction], model: CandidatesModel, parent: QWidget | None = None
    ):
        super().__init__(parent)
        self._model = model
        self._number = 0
        self._places: dict[tuple[int, int], Place] = {}
        self._streamed: dict[CodeView, int] = {}  # characters of the answer that each view has got
        self.tabs = CandidateTabs(theme, model)
        self.code = CodeView(theme, "Code")
        self.answer = CodeView(theme, "Whole answer")
        self.log = TestLog(theme)
        self._details = TableModel(("What", "Value"), self)
        self._note = label(tone="muted", wrap=True)
        self._note.hide()
        self._ways = QTabBar()
        self._ways.setProperty("kind", "plain")
        self._ways.setAccessibleName("View of the candidate")
        self._ways.setUsesScrollButtons(False)
        self._ways.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._ways.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._stack = QStackedWidget()
        self._views = (self.code, self.answer, self.log, ResultTable(theme, self._details, "Details"))
        for name, view in zip(("Code", "Answer", "Test log", "Details"), self._views, strict=True):
            self._ways.addTab(name)
            self._stack.addWidget(view)

        tools = QHBoxLayout()
        tools.setSpacing(6)
        tools.addWidget(self._ways)
        tools.addStretch(1)
        for id, icon in (("copy", "copy"), ("save", "save"), ("export", "export")):
            tools.addWidget(ActionButton(theme, actions[id], icon))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.tabs)
        column.addLayout(tools)
        column.addWidget(self._note)
        column.addWidget(self._stack, 1)
        self.tabs.currentChanged.connect(self._show_row)
        self._ways.currentChanged.connect(self._show_way)

    @property
    def number(self) -> int:
        """The candidate in view; 0 when there is none."""
        return self._number

    def start(self) -> None:
        """Another run is in the model: forget where the reader was and show its first candidate."""
        self._places.clear()
        self._number = 0
        self._show_row(self.tabs.currentIndex())

    def choose(self, number: int) -> None:
        row = self._model.row_of(number)
        if row >= 0:
            self.tabs.setCurrentIndex(row)

    def step(self, by: int) -> None:
        """To the next candidate, or back; from the last to the first."""
        self.tabs.setCurrentIndex((self.tabs.currentIndex() + by) % max(1, self.tabs.count()))

    def show_way(self, way: int) -> None:
        """CODE, ANSWER, TEST_LOG or DETAILS; takes the focus there."""
        self._ways.setCurrentIndex(way)
        self._views[way].setFocus()

    def refresh(self) -> None:
        """The candidate in view has changed."""
        candidate = self._candidate()
        if candidate is None:
            return
        way = self._ways.currentIndex()
        if way == CODE:
            self._fill_code(candidate)
        elif way == ANSWER:
            self._fill_answer(candidate)
        elif way == TEST_LOG:
            self.log.show_candidate(candidate)
        else:
            self._details.show(details(candidate))

    def _candidate(self) -> Candidate | None:
        return self._model.candidate(self._model.row_of(self._number))

    def _show_row(self, row: int) -> None:
        candidate = self._model.candidate(row)
        number = candidate.number if candidate else 0
        if number == self._number and candidate is not None:
            return
        self._keep_places()
        self._number = number
        for view in (self.code, self.answer):
            view.clear_all()
            self._streamed[view] = 0
        self._show_way(self._ways.currentIndex())
        self.chosen.emit(number)

    def _keep_places(self) -> None:
        if self._number:
            for way, view in ((CODE, self.code), (ANSWER, self.answer)):
                if self._streamed.get(view):
                    self._places[self._number, way] = view.place()

    def _show_way(self, way: int) -> None:
        self._stack.setCurrentIndex(way)
        view = self._views[way]
        fresh = isinstance(view, CodeView) and not self._streamed.get(view)
        self._note.hide()
        self.refresh()
        if isinstance(view, CodeView) and fresh and (self._number, way) in self._places:
            view.go_to(self._places[self._number, way])

    def _fill_code(self, candidate: Candidate) -> None:
        """The whole answer while it comes, its code block once it is complete."""
        if not candidate.ended:
            self._stream(self.code, candidate)
            return
        block = candidate.block
        self.code.settle(block.code, block.language or _untagged(block))
        self._streamed[self.code] = len(candidate.text)
        self._explain(self.code)

    def _fill_answer(self, candidate: Candidate) -> None:
        if not candidate.ended:
            self._stream(self.answer, candidate)
            return
        self.answer.settle(candidate.text, "markdown")
        self._streamed[self.answer] = len(candidate.text)
        self._explain(self.answer)

    def _stream(self, view: CodeView, candidate: Candidate) -> None:
        text = candidate.text
        view.stream(text[self._streamed.get(view, 0) :])
        self._streamed[view] = len(text)

    def _explain(self, view: CodeView) -> None:
        self._note.setText(view.notice)
        self._note.setVisible(bool(view.notice))
