"""The run in one line: how far, how soon, how fast."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.widgets.controls import label, set_tone
from app.widgets.loading_strip import in_words
from app.words import tr
from engine.contract import Loading, Ready
from engine.session.run import Run

FLASH_MS = 6000


class StatusLine(QWidget):
    """Left: the run, in words. Right: the model and where it runs."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._run, self._model = label(), label(tone="muted")
        self._words = ""
        self._flash = QTimer(self)
        self._flash.setSingleShot(True)
        self._flash.setInterval(FLASH_MS)
        self._flash.timeout.connect(self._end_flash)
        for part, name in ((self._run, "Run status"), (self._model, "Model status")):
            part.setAccessibleName(name)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 4, 0)
        row.addWidget(self._run)
        row.addStretch(1)
        row.addWidget(self._model)

    @property
    def text(self) -> str:
        return self._run.text()

    def show_run(self, words: str, tone: str = "") -> None:
        self._run.setText(words)
        set_tone(self._run, tone)

    def show_model(self, words: str) -> None:
        self._words = words
        if not self._flash.isActive():
            self._model.setText(words)

    def flash(self, words: str) -> None:
        """Say for a while that something was done."""
        self._model.setText(words)
        self._flash.start()

    def _end_flash(self) -> None:
        self._model.setText(self._words)


def run_in_words(run: Run, per_second: float | None) -> str:
    """For example: 5 of 8 finished, 2 pass | first token 0.4 s | first finished 2.1 s | 486 tok/s."""
    return "   |   ".join(part for part in (_progress(run), *_times(run), *_speed(run, per_second)) if part)


def run_in_title(run: Run | None) -> str:
    """The window's title: the task bar tells how far it is, too."""
    return "Bassline" if run is None else f"Bassline: {_progress(run).replace('   |   ', ', ')}"


def model_in_words(ready: Ready | None) -> str:
    if ready is None:
        return "No model loaded"
    parts = [ready.model, ready.device, ready.precision if ready.precision != "none" else "", ready.note]
    return "   |   ".join(dict.fromkeys(part for part in parts if part))


def preload_in_words(model: str, stage: Loading | None) -> str:
    """A load that nobody waits for, told calmly."""
    words = tr("Loading {model} in the background").format(model=model)
    return f"{words}: {in_words(stage)}" if stage else words


def _progress(run: Run) -> str:
    candidates = run.candidates.values()
    finished, passing = sum(c.state in ("done", "cut") for c in candidates), sum(c.passed for c in candidates)
    testing = sum(c.test_state in ("queued", "running") for c in candidates)
    count = f"{finished} of {len(run.candidates)} finished"
    if passing or any(c.report for c in candidates):
        count += f", {passing} pass" if passing != 1 else ", 1 passes"
    if testing:
        count += f", {testing} in test"
    words = {
        "waiting": "Waiting for the model",
        "reading prompt": f"Reading the prompt: {run.prompt_done:,} of {run.prompt_tokens:,} tokens",
        "stopping": f"Stopping…   |   {count}",
        "stopped": f"Stopped   |   {count}",
        "failed": f"Failed   |   {count}",
    }
    return words.get(run.state, count)


def _times(run: Run) -> tuple[str, str]:
    started = [c.started_s for c in run.candidates.values() if c.started_s is not None]
    ended = [c.finished_s for c in run.candidates.values() if c.finished_s is not None and c.state in ("done", "cut")]
    first = run.metrics.time_to_first_token_s if run.metrics else min(started, default=None)
    return (
        "" if first is None else f"first token {_seconds(first)}",
        f"first finished {_seconds(min(ended))}" if ended else "",
    )


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 0.1 else f"{value:.1f} s"


def _speed(run: Run, per_second: float | None) -> tuple[str, str]:
    if run.metrics is not None:
        per_second = run.metrics.tokens_per_second
    totals = run.totals
    return (
        "" if per_second is None else f"{per_second:,.0f} tok/s",
        f"drafts accepted {100 * totals.accepted / totals.proposed:.0f} %" if totals and totals.proposed else "",
    )
