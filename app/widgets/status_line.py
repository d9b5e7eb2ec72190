"""The run in one line: progress, times and speed."""

import re
from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.ui.words import tr
from app.widgets.controls import LineLabel
from app.widgets.loading_strip import in_words
from engine.contract import Loading, Metrics, Ready
from engine.contract.states import FINISHED
from engine.session.run import Run
from engine.session.states import IN_TEST, RUN_STATES, RunState

FLASH_MS = 6000
APART = "   |   "
GAP = 10
PAYS = 0.97  # of regular decoding's speed; below it drafts cost more than a measurement's noise


class StatusLine(QWidget):
    """Left: the run, in words, and perhaps an offer. Right: the model and where it runs.

    Both give up their last words first where there is no room for all, and never end in the middle of one; the tooltip
    and screen readers have all of it. What was done just now goes before both.
    """

    flashed = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._run = LineLabel(QSizePolicy.Policy.Ignored)
        self._model = LineLabel(QSizePolicy.Policy.Fixed)
        self._model.setProperty("tone", "muted")
        self._run_words = self._words = self._download = self._writing = self._done = ""
        self._done_levels: list[str] = []
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
        row.setSpacing(GAP)
        row.addWidget(self._run, 1)
        row.addWidget(self._offer)
        row.addWidget(self._model)
        self.setFixedHeight(self._offer.sizeHint().height())  # an offer moves nothing

    @property
    def text(self) -> str:
        """All there is to say of the run."""
        return self._run_words

    @property
    def model_text(self) -> str:
        """All there is to say of the model, or of what was done just now."""
        return self._done or APART.join(part for part in (self._writing, self._words, self._download) if part)

    @property
    def shown(self) -> tuple[str, str]:
        """What there is room for: of the run, and of the model."""
        return self._run.shown, self._model.shown

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return QSize(0, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.setFixedHeight(self._offer.sizeHint().height())
            self._fit()

    def show_run(self, words: str) -> None:
        self._run_words = words
        self._fit()

    def show_model(self, words: str) -> None:
        self._words = words
        self._fit()

    def show_download(self, words: str = "") -> None:
        """What is being downloaded beside, and how far it is; empty when nothing is."""
        self._download = words
        self._fit()

    def show_writing(self, words: str = "") -> None:
        """What the model writes beside the run, and how far it is; empty when it writes nothing."""
        self._writing = words
        self._fit()

    def offer(self, words: str = "", tip: str = "", do: Callable[[], None] | None = None) -> None:
        """A button with ``words``; without any it goes away."""
        self._do = do
        self._offer.setText(words)
        self._offer.setAccessibleName(words or tr("Offer"))
        self._offer.setToolTip(tip)
        self._offer.setVisible(bool(words))
        self._fit()

    def flash(self, words: str, *shorter: str) -> None:
        """Say for a while that something was done; ``shorter``: what to say where there is less room, longest first."""
        self._done, self._done_levels = words, ["", *reversed(shorter), words]
        self._flash.start()
        self._fit()
        self.flashed.emit(words)

    def _fit(self) -> None:
        """As much of each as there is room for: the beginnings of both before the rest of either."""
        run, model = levels(self._run_words), self._done_levels or levels(self.model_text)
        last_run, last_model = len(run) - 1, len(model) - 1
        offer = self._offer.sizeHint().width() + GAP if self._do is not None else 0
        room = self.width() - 8 - offer - 2 * GAP
        metrics, place = self.fontMetrics(), [0, 0]
        steps = [(1, last_model)] if self._done else []
        for side, wanted in (*steps, (0, 1), (1, 1), (0, last_run), (1, last_model)):
            for level in range(place[side] + 1, min(wanted, (last_run, last_model)[side]) + 1):
                texts = (run[level] if side == 0 else run[place[0]], model[level] if side == 1 else model[place[1]])
                if sum(map(metrics.horizontalAdvance, texts)) <= room:
                    place[side] = level
        self._run.show_part(run[place[0]], self._run_words)
        self._model.show_part(model[place[1]], self.model_text)

    def _take_offer(self) -> None:
        do = self._do
        self.offer()
        if do is not None:
            do()

    def _end_flash(self) -> None:
        self._done, self._done_levels = "", []
        self._fit()


def levels(words: str) -> list[str]:
    """``words`` from nothing to all of them, in steps at which they may end."""
    first, *others = words.split(APART)
    ends = [match.start() for match in re.finditer(r"(?<!\d), |: |, (?!\d)", first)]
    found = ["", *(first[:end] for end in ends), first]
    for part in others:
        found.append(found[-1] + APART + part)
    return found


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
    words = tr("Drafts slowed this run down: {speed:.2f}x the speed of regular decoding.")
    return words.format(speed=metrics.speedup)


def _progress(run: Run) -> str:
    candidates = run.candidates.values()
    finished, passing = sum(c.state in FINISHED for c in candidates), sum(c.passed for c in candidates)
    testing = sum(c.test_state in IN_TEST for c in candidates)
    count = tr("{n} of {all} finished").format(n=finished, all=len(run.candidates))
    if passing or any(c.report for c in candidates):
        count += tr(", {n} passed").format(n=passing)
    if testing:
        count += tr(", {n} being tested").format(n=testing)
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
        words.append(tr("batch size {n}").format(n=metrics.width))
    if metrics.plain_step_share:
        words.append(tr("{share:.0f} % of steps without drafts").format(share=100 * metrics.plain_step_share))
    return words
