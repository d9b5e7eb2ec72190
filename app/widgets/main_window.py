"""The window: its parts, their places and what it remembers. What happens in it is the controller's."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import (
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QStyle,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.item_models.candidates import CandidatesModel
from app.ui.actions import ACTIONS, MENUS, ActionState
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.candidate_page import CandidatePage
from app.widgets.code_editor import CodeEditor, local_files
from app.widgets.context_strip import ContextStrip
from app.widgets.loading_strip import LoadingStrip
from app.widgets.message_area import MessageArea
from app.widgets.notice import Notice
from app.widgets.run_bar import RunBar
from app.widgets.start_page import StartPage
from app.widgets.status_line import StatusLine

TESTS_HINT = """\
Asserts that see the candidate's names:

assert add(1, 2) == 3

or a pytest file:

from solution import add

def test_add():
    assert add(1, 2) == 3

Tab indents; Ctrl+Tab leaves the editor."""


class MainWindow(QMainWindow):
    """``wants_to_close`` is emitted instead of closing; the controller asks, shuts down and calls ``let_go``."""

    wants_to_close = Signal()
    files_dropped = Signal(list)  # their paths

    def __init__(self, theme: Theme, models: list[tuple[str, str]], settings: Path):
        super().__init__()
        self.setWindowTitle("Bassline")
        self.setWindowIcon(theme.icon("window", "accent"))
        self.setMinimumSize(1000, 640)
        self.theme = theme
        self._settings = QSettings(str(settings / "window.ini"), QSettings.Format.IniFormat)
        self._may_close = False
        self.situation: ActionState | None = None
        self._tips: dict[str, tuple[str, str]] = {}  # of each action: why not, and its tip
        self.actions_by_id = self._make_actions()
        self.candidates = CandidatesModel(self)
        self.bar = RunBar(theme, self.actions_by_id, models)
        self.notice = Notice(theme)
        self.loading = LoadingStrip()
        self.prompt = CodeEditor(theme, tr("Prompt"), tr("What should the code do?"))
        self.tests = CodeEditor(theme, tr("Tests"), tr(TESTS_HINT), "python")
        self.context = ContextStrip(theme)
        self.start_page = StartPage(theme)
        self.page = CandidatePage(theme, self.actions_by_id, self.candidates)
        self.status = StatusLine()
        self._lay_out()
        self._restore()
        self.setAcceptDrops(True)
        theme.changed.connect(self._paint_icons)
        self.prompt.setFocus()

    def on(self, id: str, do: Callable[[], None]) -> None:
        """What an action does."""
        self.actions_by_id[id].triggered.connect(lambda _checked=False: do())

    def is_on(self, id: str) -> bool:
        """Whether a checkable action is on."""
        return self.actions_by_id[id].isChecked()

    def enable(self, now: ActionState) -> None:
        """Grey what makes no sense now; the tooltip says why."""
        if now == self.situation:
            return  # asked at every tick
        self.situation = now
        for action in ACTIONS:
            reason, tip = action.blocked(now), action.tip_now(now) or action.tip
            if self._tips.get(action.id) != (reason, tip):
                self._tips[action.id] = reason, tip
                qt = self.actions_by_id[action.id]
                tip = f"{tr(tip)} ({key_text(qt)})" if action.key else tr(tip)
                qt.setEnabled(not reason)
                qt.setToolTip(tr(reason) if reason else tip)

    def add_panel(self, panel: QWidget, action: str) -> None:
        """Something beside the editors and candidates, at the right; the action shows and hides it."""
        self._beside.addWidget(panel)
        self._beside.setStretchFactor(1, 0)
        shown = self.actions_by_id[action]
        panel.setVisible(shown.isChecked())
        shown.toggled.connect(panel.setVisible)

    def add_strip(self, strip: QWidget) -> None:
        """A line above the editors that comes and goes, as the loading strip does, which it makes room for."""
        self._messages.add(strip)

    def show_candidates(self, shown: bool) -> None:
        """Either the candidates or the start page."""
        self._right.setCurrentWidget(self.page if shown else self.start_page)

    def go_to_editor(self, editor: CodeEditor) -> None:
        self.editors.setCurrentWidget(editor)
        editor.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def come_to_front(self) -> None:
        """Somebody looks for this window."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def let_go(self) -> None:
        """Close for good."""
        self._may_close = True
        self.close()

    def remembered(self, key: str) -> str:
        return str(self._settings.value(key, ""))

    def remember(self, key: str, value: str) -> None:
        self._settings.setValue(key, value)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        event.acceptProposedAction()
        self.files_dropped.emit(local_files(event.mimeData()))

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        if not self._may_close:
            event.ignore()
            self.wants_to_close.emit()
            return
        self._settings.setValue("geometry", self.saveGeometry())
        self._settings.setValue("splitter", self._splitter.saveState())
        for action in ACTIONS:
            if action.remembered:
                self.remember(action.id, "on" if self.is_on(action.id) else "off")
        self._settings.sync()
        event.accept()

    def _lay_out(self) -> None:
        self.editors = QTabWidget()
        self.editors.setAccessibleName(tr("Prompt and tests"))
        self.editors.setDocumentMode(True)
        self.editors.tabBar().setProperty("kind", "plain")
        self.editors.tabBar().setAccessibleName(tr("Prompt and tests"))
        self.editors.addTab(self.prompt, tr("Prompt"))
        self.editors.addTab(self.tests, tr("Tests"))
        self._right = QStackedWidget()
        self._right.addWidget(self.start_page)
        self._right.addWidget(self.page)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(12)
        left = QWidget()
        left_column = QVBoxLayout(left)
        left_column.setContentsMargins(0, 0, 0, 0)
        left_column.setSpacing(0)
        left_column.addWidget(self.editors, 1)
        left_column.addWidget(self.context)
        self.editors.currentChanged.connect(lambda place: self.context.setVisible(place == 0))
        self._splitter.addWidget(left)
        self._splitter.addWidget(self._right)
        self._splitter.setStretchFactor(0, 0)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes([340, 920])
        left.setMinimumWidth(260)
        self._right.setMinimumWidth(480)
        self._beside = QSplitter(Qt.Orientation.Horizontal)
        self._beside.setChildrenCollapsible(False)
        self._beside.setHandleWidth(12)
        self._beside.addWidget(self._splitter)
        self._beside.setStretchFactor(0, 1)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(12, 8, 12, 6)
        column.setSpacing(6)
        self._messages = MessageArea((self.notice, self.loading))
        column.addWidget(self.bar)
        column.addWidget(self._messages)
        column.addWidget(self._beside, 1)
        column.addWidget(self.status)
        self.setCentralWidget(centre)

    def _make_actions(self) -> dict[str, QAction]:
        menus = {name: self.menuBar().addMenu(tr(f"&{name}")) for name in MENUS}
        made: dict[str, QAction] = {}
        for action in ACTIONS:
            qt = QAction(tr(action.text), self)
            qt.setCheckable(action.checkable)
            if action.id.startswith("generate"):  # both Enter keys
                qt.setShortcuts([QKeySequence(action.key), QKeySequence(action.key.replace("Return", "Enter"))])
            elif action.key:
                qt.setShortcut(QKeySequence(action.key))
            if action.separated:
                menus[action.menu].addSeparator()
            menus[action.menu].addAction(qt)
            self.addAction(qt)
            made[action.id] = qt
        self._paint_icons(made)
        return made

    def _paint_icons(self, made: dict[str, QAction] | None = None) -> None:
        for action in ACTIONS:
            if action.icon:
                (made or self.actions_by_id)[action.id].setIcon(self.theme.icon(action.icon))

    def _restore(self) -> None:
        for action in ACTIONS:
            if action.remembered:
                self.actions_by_id[action.id].setChecked(
                    (self.remembered(action.id) or ("off", "on")[action.on]) == "on"
                )
        geometry, splitter = self._settings.value("geometry"), self._settings.value("splitter")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        else:
            title_bar = self.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight)
            self.resize(first_size(self.screen().availableSize(), title_bar))
        if isinstance(splitter, QByteArray):
            self._splitter.restoreState(splitter)


def first_size(available: QSize, title_bar: int) -> QSize:
    """What a window without a past opens with, title bar and all within what is ``available`` of the screen."""
    return QSize(1280, 760).boundedTo(available - QSize(0, title_bar))


def key_text(action: QAction) -> str:
    """An action's key as this system writes it; empty when it has none."""
    return action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
