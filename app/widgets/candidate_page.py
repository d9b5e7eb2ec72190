"""The candidates: a strip of tabs, or a list when there are many, and a page that shows the chosen one in six ways."""

from collections.abc import Mapping
from functools import cached_property

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMenu,
    QSizePolicy,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.item_models.candidates import CandidatesModel
from app.item_models.details import details
from app.item_models.table import TableModel
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.answer_view import AnswerView
from app.widgets.candidate_list import CandidateList
from app.widgets.candidate_tabs import CandidateTabs
from app.widgets.code_view import ViewPosition
from app.widgets.compare_view import CompareView
from app.widgets.controls import ActionButton, label
from app.widgets.result_table import ResultTable
from app.widgets.test_log import TestLog
from app.widgets.tile_view import TileView
from engine.session.candidate import Candidate

CODE, ANSWER, TEST_LOG, DETAILS, COMPARE, TILES = range(6)
MANY = 10  # candidates; more of them are a list
BUTTONS = (("copy", "copy"), ("save", "save"), ("export", "export"), ("fix_it", "fix"))
MORE = (
    *("generate_more", "cancel_candidate", "", "follow_up", "open_in_editor", ""),
    *("save_with_tests", "export_json", "", "best", "next_passing"),
)


class CandidatePage(QWidget):
    """Only what is in view has an editor; the other candidates are text in the run and cost nothing."""

    chosen = Signal(int)  # the number of the candidate now in view

    def __init__(
        self, theme: Theme, actions: Mapping[str, QAction], model: CandidatesModel, parent: QWidget | None = None
    ):
        super().__init__(parent)
        self._theme, self._model = theme, model
        self._number = 0
        self._user_chose = False  # candidate or view, since the run began or went on
        self._opening = False
        self._way_before: int | None = None  # a view was opened by itself
        self._places: dict[tuple[int, int], ViewPosition] = {}
        self.tabs = CandidateTabs(theme, model)
        self.list = CandidateList(theme, model)
        self.code = AnswerView(theme, tr("Code"))
        self.answer = AnswerView(theme, tr("Whole answer"), whole=True)
        self.log = TestLog(theme)
        self._details = TableModel((tr("Property"), tr("Value")), self)
        self._stack = QStackedWidget()
        for view in (self.code, self.answer, self.log, ResultTable(theme, self._details, tr("Details"))):
            self._stack.addWidget(view)
        self._note = label(tone="muted", wrap=True)
        self._note.hide()
        self._ways = self._make_ways()
        self._lay_out(actions)
        self.tabs.currentChanged.connect(self._tab_changed)
        self.list.picked.connect(self.choose)
        self._ways.currentChanged.connect(self._way_changed)
        model.rowsInserted.connect(self._strip_or_list)

    @property
    def number(self) -> int:
        """The candidate in view; 0 when there is none."""
        return self._number

    @property
    def way(self) -> int:
        return self._ways.currentIndex()

    def start(self) -> None:
        """Another run is in the model: forget where the reader was and show its first candidate."""
        self._places.clear()
        self._number = 0
        self.go_on()
        self.code.forget()
        self.answer.forget()
        self._strip_or_list()
        self._pick(self._model.candidate(0))

    def go_on(self) -> None:
        """The run begins, or goes on: what the user has chosen before says nothing of what comes."""
        self._user_chose = False
        if (way := self._way_before) is not None:
            self._open_way(way)
            self._way_before = None

    def open(self, number: int, way: int | None = None) -> None:
        """Show a candidate without anybody having asked for it: the focus stays where it is."""
        self._pick(self._model.candidate(self._model.row_of(number)))
        if way is not None and way != self.way:
            before = self.way if self._way_before is None else self._way_before
            self._open_way(way)
            self._way_before = before

    @property
    def in_use(self) -> bool:
        """The user has chosen what is in view, or reads in it by keyboard or mouse: nothing is put in its place."""
        focus = QApplication.focusWidget()
        return self._user_chose or (focus is not None and self._stack.isAncestorOf(focus))

    def choose(self, number: int) -> None:
        """The user wants to see this candidate."""
        self._user_chose = True
        self._pick(self._model.candidate(self._model.row_of(number)))

    def step(self, by: int) -> None:
        """To the next candidate, or back; from the last to the first."""
        rows = self._model.rowCount()
        if rows:
            self._user_chose = True
            self._pick(self._model.candidate((self._model.row_of(self._number) + by) % rows))

    def show_way(self, way: int) -> None:
        """CODE, ANSWER, TEST_LOG, DETAILS, COMPARE or TILES, as the user wants; takes the focus there."""
        self._user_chose, self._way_before = True, None
        self._ways.setCurrentIndex(way)
        if (view := self._stack.currentWidget()) is not None:
            view.setFocus()

    def refresh(self) -> None:
        """The candidate in view has changed."""
        candidate = self._candidate()
        self.list.refresh()
        if candidate is None:
            return
        way = self.way
        if way in (CODE, ANSWER):
            self._answer_in_view.follow(candidate)
            notice = self._answer_in_view.notice
            self._note.setText(notice)
            self._note.setVisible(bool(notice))
        elif way == TEST_LOG:
            self.log.show_candidate(candidate, self._model.is_outdated(candidate))
        elif way == DETAILS:
            reason = self._model.best_reason.reason if candidate.number == self._model.best else ""
            self._details.show(details(candidate, self._model.run, reason))
        elif way == COMPARE:
            self.compare.show_candidate(candidate)
        else:
            self.tiles.show_candidate(candidate)

    @cached_property
    def compare(self) -> CompareView:
        return CompareView(self._theme, self._model)

    @cached_property
    def tiles(self) -> TileView:
        tiles = TileView(self._theme, self._model)
        tiles.picked.connect(self.choose)
        return tiles

    @property
    def _answer_in_view(self) -> AnswerView:
        return self.answer if self.way == ANSWER else self.code

    def _candidate(self) -> Candidate | None:
        return self._model.candidate(self._model.row_of(self._number))

    def _open_way(self, way: int) -> None:
        self._opening = True
        self._ways.setCurrentIndex(way)
        self._opening = False

    def _way_changed(self, way: int) -> None:
        if not self._opening:
            self._user_chose, self._way_before = True, None
        self._show_way(way)

    def _tab_changed(self, row: int) -> None:
        candidate = self._model.candidate(row)
        if candidate is not None and self._number and candidate.number != self._number:
            self._user_chose = True
        self._pick(candidate)

    def _pick(self, candidate: Candidate | None) -> None:
        number = candidate.number if candidate else 0
        if number != self._number:
            self._keep_places()
            self._number = number
            self.code.forget()
            self.answer.forget()
            self._show_way(self.way)
            self.chosen.emit(number)
        self.tabs.setCurrentIndex(self._model.row_of(number))
        self.list.show_current(number)

    def _keep_places(self) -> None:
        for way, view in ((CODE, self.code), (ANSWER, self.answer)):
            if self._number and not view.is_empty:
                self._places[self._number, way] = view.place()

    def _show_way(self, way: int) -> None:
        if way >= COMPARE:  # made when they are first wanted: editors that nobody sees cost
            view = self.compare if way == COMPARE else self.tiles
            if self._stack.indexOf(view) < 0:
                self._stack.addWidget(view)
            self._stack.setCurrentWidget(view)
        else:
            self._stack.setCurrentIndex(way)
        self._note.hide()
        fresh = way in (CODE, ANSWER) and not self._answer_in_view.follows(self._candidate())
        self.refresh()
        candidate = self._candidate()
        if fresh and candidate is not None:
            place = self._places.get((self._number, way), ViewPosition())
            if place.following and candidate.ended:  # there is no end to follow any more: from the beginning
                place = ViewPosition(following=False)
            self._answer_in_view.go_to(place)

    def _strip_or_list(self) -> None:
        many = self._model.rowCount() > MANY
        self.tabs.setVisible(not many)
        self.list.setVisible(many)
        self._fit_buttons()
        self.list.show_current(self._number)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        self._fit_buttons()

    def _fit_buttons(self) -> None:
        """Buttons give up their words before the ways lose theirs."""
        room = self.width() - (self.list.width() + 10 if self.list.isVisibleTo(self) else 0)
        compact = self._ways.sizeHint().width() + self._wide > room
        for button in self._buttons:
            button.be_compact(compact)

    def _make_ways(self) -> QTabBar:
        ways = QTabBar()
        ways.setProperty("kind", "plain")
        ways.setAccessibleName(tr("View of the candidate"))
        ways.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        ways.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for name in (tr("Code"), tr("Answer"), tr("Test log"), tr("Details"), tr("Compare"), tr("Tile")):
            ways.addTab(name)
        return ways

    def _lay_out(self, actions: Mapping[str, QAction]) -> None:
        tools = QHBoxLayout()
        tools.setSpacing(6)
        tools.addWidget(self._ways)
        tools.addStretch(1)
        self._buttons = [ActionButton(self._theme, actions[id], icon, "tool") for id, icon in BUTTONS]
        self._more = self._more_button(actions)
        for button in (*self._buttons, self._more):
            tools.addWidget(button)
        self._wide = sum(button.sizeHint().width() + 6 for button in (*self._buttons, self._more))
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.tabs)
        column.addLayout(tools)
        column.addWidget(self._note)
        column.addWidget(self._stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.list)
        row.addLayout(column, 1)
        self.list.hide()

    def _more_button(self, actions: Mapping[str, QAction]) -> QToolButton:
        """What is done less often, so that the row fits into the narrowest window."""
        menu = QMenu(self)
        for id in MORE:
            if id:
                menu.addAction(actions[id])
            else:
                menu.addSeparator()
        button = QToolButton()
        button.setProperty("kind", "menu")
        button.setText(tr("More"))
        button.setAccessibleName(tr("More actions"))
        button.setToolTip(tr("More that can be done with this candidate"))
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button
