"""What the tests said about one candidate."""

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from app.highlight import displayed
from app.item_models.table import Cell, TableModel
from app.theme import Theme, monospace
from app.widgets.controls import label, set_tone
from app.widgets.result_table import ResultTable
from engine.runner.report import Report
from engine.session.run import Candidate

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

    __test__ = False  # not a test class, whatever pytest makes of the name

    def __init__(self, theme: Theme, parent: QWidget | None = None):
        super().__init__(parent)
        self._verdict = label(role="heading", wrap=True)
        self._verdict.setAccessibleName("Verdict")
        self._lamps = label(tone="muted", wrap=True)
        self._lamps.setAccessibleName("What held")
        self._tests = TableModel(("Test", "Result", "Why"), self)
        self._table = ResultTable(theme, self._tests, "Test results")
        self._output_title = label("Printed", tone="muted")
        self.setFocusProxy(self._table)
        self._output = QPlainTextEdit()
        self._output.setAccessibleName("Printed output")
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
        column.addWidget(self._lamps)

    def show_candidate(self, candidate: Candidate) -> None:
        report = candidate.report
        words, tone = _headline(candidate, report)
        self._verdict.setText(words)
        set_tone(self._verdict, tone)
        self._tests.show(
            [_row(test.id, test.outcome, test.why, test.seconds) for test in report.tests] if report else []
        )
        self._table.setVisible(bool(report and report.tests))
        printed = _printed(report) if report else ""
        self._output.setPlainText(printed)
        self._output.setVisible(bool(printed))
        self._output_title.setVisible(bool(printed))
        self._lamps.setText(
            "\n".join(f"{name.capitalize()}: {fact}" for name, fact in report.lamps.items()) if report else ""
        )

    @property
    def verdict(self) -> str:
        return self._verdict.text()


def _headline(candidate: Candidate, report: Report | None) -> tuple[str, str]:
    if report is None:
        waiting = {
            "queued": "Waiting for its turn.",
            "running": f"Running: {candidate.tests_done} of {candidate.tests_total or '?'} tests done.",
        }
        return waiting.get(
            candidate.test_state, "Not tested yet. Run tests (Ctrl+T) tests every finished candidate."
        ), "muted"
    words, tone = _VERDICTS[report.verdict]
    count = f" {report.passed} of {len(report.tests)} tests passed in {report.seconds:.1f} s." if report.tests else ""
    why = f" {displayed(candidate.why)}" if candidate.why and not report.tests else ""
    return f"{words}{count}{why}", tone


def _row(id: str, outcome: str, why: str, seconds: float) -> tuple[Cell, ...]:
    icon, tone = _OUTCOMES.get(outcome, ("tests-error", "warning"))
    took = f"{outcome}, {seconds * 1000:.0f} ms" if seconds else outcome
    return Cell(displayed(id)), Cell(took, icon, tone), Cell(displayed(why))


def _printed(report: Report) -> str:
    rest = report.output_bytes - len(report.output.encode("utf-8", "replace"))
    return displayed(report.output) + (f"\n… and {rest:,} bytes more" if rest > 0 else "")
