"""What the tests said about one candidate."""

from collections.abc import Sequence

from PySide6.QtWidgets import QPlainTextEdit, QTableView, QVBoxLayout, QWidget

from app.item_models.table import Cell, TableModel
from app.ui.highlight import displayed
from app.ui.theme import Theme, monospace
from app.ui.words import tr
from app.widgets.controls import label, set_tone
from app.widgets.isolation import IsolationView
from app.widgets.result_table import ResultTable
from engine.runner.report import Report, TestResult
from engine.runner.verdicts import Outcome
from engine.session.candidate import Candidate
from engine.session.states import OUTCOMES, VERDICTS, TestState


class TestLog(QWidget):
    """Verdict, one row per test with the first failing assert, what the box held, and what was printed."""

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._verdict = label(role="heading", wrap=True)
        self._verdict.setAccessibleName(tr("Verdict"))
        self._isolation = IsolationView(theme)
        self._tests = TableModel((tr("Test"), tr("Result"), tr("Why")), self)
        self._table = ResultTable(theme, self._tests, tr("Test results"))
        self._output_title = label(tr("Output"), tone="muted")
        self.setFocusProxy(self._table)
        self._output = QPlainTextEdit()
        self._output.setAccessibleName(tr("Printed output"))
        self._output.setReadOnly(True)
        self._output.setTabChangesFocus(True)
        self._output.setFont(monospace())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._verdict)
        column.addWidget(self._table, 3)
        column.addWidget(self._output_title)
        column.addWidget(self._output, 1)
        column.addWidget(self._isolation)

    def show_candidate(self, candidate: Candidate, outdated: bool = False) -> None:
        """``outdated``: its verdict is about other tests than those there are now."""
        report = candidate.report
        words, tone = _headline(candidate, report)
        if outdated:
            words, tone = f"{words} {tr('The tests have changed since.')}", "muted"
        self._verdict.setText(words)
        set_tone(self._verdict, tone)
        tests = report.tests if report else ()
        other = self._tests.show([_row(test) for test in tests])
        self._table.setVisible(bool(tests))
        if other:
            self._go_to_failure([test.outcome for test in tests])
        printed = _printed(report) if report else ""
        self._output.setPlainText(printed)
        self._output.setVisible(bool(printed))
        self._output_title.setVisible(bool(printed))
        self._isolation.show_isolation(report.isolation if report else {}, report.weak if report else ())

    def _go_to_failure(self, outcomes: Sequence[str]) -> None:
        """The first test that did not pass is what a reader looks for."""
        failing = (row for row, outcome in enumerate(outcomes) if outcome not in (Outcome.PASSED, Outcome.SKIPPED))
        if (row := next(failing, None)) is not None:
            self._table.selectRow(row)
            self._table.scrollTo(self._tests.index(row, 0), QTableView.ScrollHint.PositionAtCenter)

    @property
    def isolation(self) -> list[str]:
        """Isolation, in sentences."""
        return self._isolation.words

    @property
    def verdict(self) -> str:
        return self._verdict.text()


def _headline(candidate: Candidate, report: Report | None) -> tuple[str, str]:
    if report is None:
        return _waiting(candidate), "muted"
    shown = VERDICTS[report.verdict]
    parts = [tr(shown.sentence)]
    if report.tests:
        count = tr("{n} of {all} tests passed in {time:.1f} s.")
        parts.append(count.format(n=report.passed, all=len(report.tests), time=report.seconds))
    if candidate.why and not report.tests:
        parts.append(displayed(candidate.why))
    return " ".join(parts), shown.tone


def _waiting(candidate: Candidate) -> str:
    if candidate.test_state == TestState.QUEUED:
        return tr("Waiting for its turn.")
    if candidate.test_state == TestState.RUNNING:
        words = tr("Running: {n} of {all} tests done.")
        return words.format(n=candidate.tests_done, all=candidate.tests_total or "?")
    return tr("Not tested yet. Choose Run tests (Ctrl+T) to test every finished candidate.")


def _row(test: TestResult) -> tuple[Cell, ...]:
    shown = OUTCOMES[test.outcome]
    took = f"{tr(shown.word)}, {test.seconds * 1000:.0f} ms" if test.seconds else tr(shown.word)
    return Cell(displayed(test.id)), Cell(took, shown.icon, shown.tone), Cell(displayed(test.why))


def _printed(report: Report) -> str:
    rest = report.output_bytes - len(report.output.encode("utf-8", "replace"))
    more = "\n" + tr("… and {n:,} bytes more").format(n=rest) if rest > 0 else ""
    return displayed(report.output) + more
