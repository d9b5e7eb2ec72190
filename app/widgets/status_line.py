"""The run in one line: progress, times and speed."""

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.ui.words import tr
from app.widgets.controls import ElidedLabel, label
from app.widgets.loading_strip import in_words
from engine.contract import Loading, Metrics, Ready
from engine.contract.states import FINISHED
from engine.session.run import Run
from engine.session.states import IN_TEST, RUN_STATES, RunState

FLASH_MS = 6000
APART = "   |   "
PAYS = 0.97  # of regular decoding's speed; below it drafts cost more than a measurement's noise


class StatusLine(QWidget):
    """Left: the run, in words, and perhaps an offer. Right: the model and where it runs."""

    flashed = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._run, self._model = ElidedLabel(), label(tone="muted")
        self._words = ""
        self._do: Callable[[], None] | None = None
        self._offer = QPushButton()
        self._offer.setProperty("kind", "link")
        self._offer.setAutoDefault(False)
        self._offer.setAccessibleName(tr("Offer"))
        self._offer.clicked.connect(self._take_offer)
        self._offer.hide()
        self._flash = QTimer(self)
        self._flash.setSingleShot(True)
        self._flash.setInterval(FLASH_MS)
        self._flash.timeout.connect(self._end_flash)
        for part, name in ((self._run, tr("Run status")), (self._model, tr("Model status"))):
            part.setAccessibleName(name)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 4, 0)
        row.setSpacing(10)
        row.addWidget(self._run, 1)
        row.addWidget(self._offer)
        row.addWidget(self._model)
        self.setFixedHeight(self._offer.sizeHint().height())  # an offer moves nothing

    @property
    def text(self) -> str:
        return self._run.full_text

    @property
    def model_text(self) -> str:
        return self._model.text()

    def show_run(self, words: str) -> None:
        self._run.set_full_text(words)

    def show_model(self, words: str) -> None:
        self._words = words
        if not self._flash.isActive():
            self._model.setText(words)

    def offer(self, words: str = "", tip: str = "", do: Callable[[], None] | None = None) -> None:
        """A button with ``words``; without any it goes away."""
        self._do = do
        self._offer.setText(words)
        self._offer.setAccessibleName(words or tr("Offer"))
        self._offer.setToolTip(tip)
        self._offer.setVisible(bool(words))

    def flash(self, words: str) -> None:
        """Say for a while that something was done."""
        self._model.setText(words)
        self._flash.start()
        self.flashed.emit(words)

    def _take_offer(self) -> None:
        do = self._do
        self.offer()
        if do is not None:
            do()

    def _end_flash(self) -> None:
        self._model.setText(self._words)


def run_in_words(run: Run, per_second: float | None) -> str:
    """For example: 5 of 8 finished, 2 passed | first token 0.4 s | first finished 2.1 s | 486 tok/s | 1.9x faster."""
    parts = (_progress(run), *_times(run), _rate(run, per_second), _drafts(run), *_gain(run.metrics))
    return APART.join(part for part in parts if part)


def run_in_title(run: Run | None) -> str:
    """The window's title: the task bar tells how far it is, too."""
    return "Bassline" if run is None else f"Bassline: {_progress(run).replace(APART, ', ')}"


def model_in_words(ready: Ready | None) -> str:
    if ready is None:
        return tr("No model loaded")
    draft = tr("draft {name}").format(name=ready.draft) if ready.draft else ""
    parts = [ready.model, draft, ready.device, ready.precision if ready.precision != "none" else "", ready.note]
    return APART.join(dict.fromkeys(part for part in parts if part))


def preload_in_words(model: str, stage: Loading | None) -> str:
    """A load that nobody waits for, told calmly."""
    words = tr("Loading {model} in the background").format(model=model)
    return f"{words}: {in_words(stage)}" if stage else words


def drafts_do_not_pay(run: Run) -> str:
    """A sentence when guessing ahead made the run slower than regular decoding; else empty."""
    metrics = run.metrics
    if metrics is None or metrics.speedup is None or metrics.speedup >= PAYS or metrics.plain_step_share == 1:
        return ""
    words = tr("Drafts did not pay off here: {speed:.2f} of the speed of regular decoding.")
    return words.format(speed=metrics.speedup)


def _progress(run: Run) -> str:
    candidates = run.candidates.values()
    finished, passing = sum(c.state in FINISHED for c in candidates), sum(c.passed for c in candidates)
    testing = sum(c.test_state in IN_TEST for c in candidates)
    count = tr("{n} of {all} finished").format(n=finished, all=len(run.candidates))
    if passing or any(c.report for c in candidates):
        count += tr(", {n} passed").format(n=passing)
    if testing:
        count += tr(", {n} in test").format(n=testing)
    word = tr(RUN_STATES[run.state].word)
    if run.state == RunState.WAITING:
        return word
    if run.state == RunState.READING_PROMPT:
        read = tr("{n:,} of {all:,} tokens").format(n=run.prompt_done, all=run.prompt_tokens)
        return f"{word}: {read}"
    return count if run.state in (RunState.GENERATING, RunState.FINISHED) else word + APART + count


def _times(run: Run) -> tuple[str, str]:
    started = [c.started_s for c in run.candidates.values() if c.started_s is not None]
    ended = [c.finished_s for c in run.candidates.values() if c.finished_s is not None and c.state in FINISHED]
    first = run.metrics.time_to_first_token_s if run.metrics else min(started, default=None)
    return (
        "" if first is None else tr("first token {time}").format(time=_seconds(first)),
        tr("first finished {time}").format(time=_seconds(min(ended))) if ended else "",
    )


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 0.1 else f"{value:.1f} s"


def _rate(run: Run, per_second: float | None) -> str:
    if run.metrics is not None:
        per_second = run.metrics.tokens_per_second
    return "" if per_second is None else tr("{rate:,.0f} tok/s").format(rate=per_second)


def _drafts(run: Run) -> str:
    totals = run.totals
    if totals is None or not totals.proposed:
        return ""
    return tr("drafts accepted {share:.0f} %").format(share=100 * totals.accepted / totals.proposed)


def _gain(metrics: Metrics | None) -> list[str]:
    """What speculation and batching came to: against regular decoding, and what the policy chose."""
    if metrics is None:
        return []
    words = []
    if metrics.speedup is not None:
        words.append(tr("{factor:.1f}x regular decoding").format(factor=metrics.speedup))
    if metrics.width:
        words.append(tr("{n} at a time").format(n=metrics.width))
    if metrics.plain_step_share:
        words.append(tr("{share:.0f} % of steps without drafts").format(share=100 * metrics.plain_step_share))
    return words
