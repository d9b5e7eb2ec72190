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
from engine.runner.report import Report
from engine.session.candidate import Candidate

_OUTCOMES = {
    "passed": ("passed", "passed"),
    "failed": ("tests-failed", "failed"),
    "error": ("tests-error", "failed"),
    "timeout": ("tests-error", "failed"),
    "killed": ("tests-error", "failed"),
    "skipped": ("queued", "muted"),
    "missing": ("tests-error", "warning"),
}
_VERDICTS = {
    "pass": ("Passed.", "passed"),
    "pass-soft": ("Passes by its own ==: look before you trust it.", "warning"),
    "fail": ("Failed.", "error"),
    "tampered": ("Tampered with its tests.", "error"),
    "needs-in-process": ("These tests need the candidate in their own process.", "warning"),
    "infra": ("The tests could not be run.", "warning"),
}


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
        other = self._tests.show([_row(test.id, test.outcome, test.why, test.seconds) for test in tests])
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
        failing = (row for row, outcome in enumerate(outcomes) if outcome not in ("passed", "skipped"))
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
    words, tone = _VERDICTS[report.verdict]
    parts = [tr(words)]
    if report.tests:
        count = tr("{n} of {all} tests passed in {time:.1f} s.")
        parts.append(count.format(n=report.passed, all=len(report.tests), time=report.seconds))
    if candidate.why and not report.tests:
        parts.append(displayed(candidate.why))
    return " ".join(parts), tone


def _waiting(candidate: Candidate) -> str:
    if candidate.test_state == "queued":
        return tr("Waiting for its turn.")
    if candidate.test_state == "running":
        words = tr("Running: {n} of {all} tests done.")
        return words.format(n=candidate.tests_done, all=candidate.tests_total or "?")
    return tr("Not tested yet. Choose Run tests (Ctrl+T) to test every finished candidate.")


def _row(id: str, outcome: str, why: str, seconds: float) -> tuple[Cell, ...]:
    icon, tone = _OUTCOMES.get(outcome, ("tests-error", "warning"))
    took = f"{tr(outcome)}, {seconds * 1000:.0f} ms" if seconds else tr(outcome)
    return Cell(displayed(id)), Cell(took, icon, tone), Cell(displayed(why))


def _printed(report: Report) -> str:
    rest = report.output_bytes - len(report.output.encode("utf-8", "replace"))
    more = "\n" + tr("… and {n:,} bytes more").format(n=rest) if rest > 0 else ""
    return displayed(report.output) + more
