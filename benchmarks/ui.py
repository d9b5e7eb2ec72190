"""Does the window stay responsive while candidates stream? The only benchmark that opens it.

    python -m benchmarks.ui [--model NAME --pairs 10] [--seconds 8] [--json FILE]

Scripted engine: delays of the main thread, Stop, closing, text behind the engine, pasting, opening, starting. With
``--model`` also the real engine at n = 8: the main thread's share of the CPU, and the run's speed with and without the
window showing it, in turns. No display is needed; where there is one, QT_QPA_PLATFORM chooses it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.system.engines import open_engine
from app.ui.theme import Theme
from app.window.controller import MainController
from app.window.start import build
from benchmarks.machine import QUIET, facts, others_load
from engine.contract import Emit, Engine, Event, Generate, ModelChoice, Request, RunFinished, TextAdded
from engine.device import prepare_environment
from engine.runner.client import RunnerClient
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine
from engine.session.states import RunState

RATE = 1280  # tokens per second over all candidates
PROBE_MS = 5
LINE = "    value = values[letter]  # one of them\n"
START = """
import os, sys, time
begun = time.perf_counter()
from PySide6.QtCore import QTimer
import app.window.start
build = app.window.start.build
def timed(*arguments):
    controller = build(*arguments)
    def seen():
        print(time.perf_counter() - begun, "torch" in sys.modules, flush=True)
        QTimer.singleShot(50, controller.shut_down)
    QTimer.singleShot(0, seen)
    return controller
app.window.start.build = timed
sys.exit(app.window.start.main([]))
"""


@dataclass(frozen=True)
class Row:
    """One promise: what was measured, and the bound it was given. Seconds, unless ``unit`` says otherwise."""

    what: str
    found: float
    bound: float
    unit: str = "ms"

    @property
    def kept(self) -> bool:
        return self.found <= self.bound


class Timed(ScriptedEngine):
    """Remembers when each token of candidate 1 left it."""

    def __init__(self, script: Script):
        super().__init__(script)
        self.left: dict[int, float] = {}

    def run(self, emit: Emit) -> None:
        def timed(event: Event) -> None:
            if isinstance(event, TextAdded) and event.candidate == 1:
                self.left[event.tokens] = time.perf_counter()
            emit(event)

        super().run(timed)


class Window:
    """A window on an engine of our own, as a user has it before them."""

    def __init__(self, theme: Theme, home: Path, engine: Callable[[], Engine]):
        self.controller: MainController = build(theme, lambda choice: engine(), RunnerClient, home, home / "history.db")
        self.controller.window.resize(1280, 720)
        self.controller.window.show()
        self.settle()

    def settle(self) -> None:
        for _ in range(5):
            QApplication.processEvents()

    def until(self, fact: Callable[[], bool], seconds: float = 120) -> None:
        """Run the event loop, as it runs in the program, until ``fact`` holds."""
        end = time.perf_counter() + seconds
        while not fact():
            assert time.perf_counter() < end, self.controller.window.notice.sentence
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    def generate(self, model: str, **changes: object) -> None:
        bar, window = self.controller.window.bar, self.controller.window
        bar.apply(replace(bar.settings(), model=model, seed=1, **changes))  # type: ignore[arg-type]
        window.prompt.replace_text("Write a Python class for an LRU cache with a time limit for each entry.")
        self.controller.generate()

    @property
    def generating(self) -> bool:
        return self.controller.run is not None and self.controller.run.state == RunState.GENERATING

    @property
    def ended(self) -> bool:
        return self.controller.run is not None and self.controller.run.ended


@contextmanager
def opened(theme: Theme, engine: Callable[[], Engine]) -> Iterator[Window]:
    with tempfile.TemporaryDirectory() as home:
        window = Window(theme, Path(home), engine)
        try:
            yield window
        finally:
            window.controller.shut_down()
            window.controller.window.deleteLater()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def script(n: int, seconds: float) -> Script:
    """``n`` candidates for ``seconds``, RATE tokens a second together, a token to a step each."""
    step = n / RATE
    tokens = LINE.split(" ")
    words = tuple(f"{tokens[i % len(tokens)]} " for i in range(round(seconds / step)))
    return Script((ScriptedCandidate(words),), step_s=step, load_stages=(("weights", 1),))


class Lateness:
    """How much later than asked for the main thread comes back to a timer, in seconds."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._due = time.perf_counter() + PROBE_MS / 1000
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._note)
        self._timer.start(PROBE_MS)

    def _note(self) -> None:
        now = time.perf_counter()
        self.found.append(max(0.0, now - self._due))
        self._due = now + PROBE_MS / 1000
        self._timer.start(PROBE_MS)

    def stop(self) -> list[float]:
        self._timer.stop()
        return self.found


def delays(theme: Theme, n: int, seconds: float, p95_ms: float, max_ms: float) -> list[Row]:
    """The main thread while n candidates stream; and how far the text in view is behind the engine."""
    engines: list[Timed] = []

    def engine() -> Engine:
        engines.append(Timed(script(n, seconds)))
        return engines[-1]

    shown: dict[int, float] = {}
    with opened(theme, engine) as window:
        window.controller.loading.drained.connect(lambda: _note_shown(window, shown))
        window.generate("scripted", candidates=n)
        window.until(lambda: window.generating)
        probe = Lateness()
        window.until(lambda: window.ended)
        late = [1000 * delay for delay in probe.stop()]
    behind = sorted(1000 * (at - engines[0].left[tokens]) for tokens, at in shown.items())
    return [
        Row(f"delay of the main thread, n = {n}, p95", quantiles(late, n=20)[-1], p95_ms),
        Row(f"delay of the main thread, n = {n}, longest", max(late), max_ms),
        Row(f"text behind the engine, n = {n}, longest", behind[-1], 100),
    ]


def _note_shown(window: Window, shown: dict[int, float]) -> None:
    """Everything up to here is on the page now; tokens that came since the last time waited longest."""
    run = window.controller.run
    tokens = run.candidates[1].tokens if run else 0
    oldest = max(shown, default=0) + 1
    if tokens >= oldest:
        shown[oldest] = shown[tokens] = time.perf_counter()


def stopping(theme: Theme) -> list[Row]:
    """From the key to "Stopped", n = 32: 200 ms and one step."""
    found = []
    for _ in range(5):
        with opened(theme, lambda: ScriptedEngine(script(32, 30))) as window:
            window.generate("scripted", candidates=32)
            window.until(lambda: window.generating)
            start = time.perf_counter()
            window.controller.stop()
            window.until(lambda: window.ended)
            found.append(1000 * (time.perf_counter() - start))
    return [Row("Stop to Stopped, n = 32, longest of 5", max(found), 200 + 1000 * 32 / RATE)]


def closing(theme: Theme) -> list[Row]:
    with opened(theme, lambda: ScriptedEngine(script(16, 60))) as window:
        window.generate("scripted", candidates=16)
        window.until(lambda: window.generating)
        over: list[bool] = []
        window.controller.closed.connect(over.append)
        start = time.perf_counter()
        window.controller.shut_down()
        assert over == [True]
        return [Row("closing while it generates, n = 16", 1000 * (time.perf_counter() - start), 5000)]


def pasting(theme: Theme) -> list[Row]:
    rows = []
    for name, text in (("lines", LINE * 25_000), ("one line", "x" * 1_000_000)):
        with opened(theme, lambda: ScriptedEngine(script(1, 1))) as window:
            for editor in (window.controller.window.prompt, window.controller.window.tests):
                window.controller.window.go_to_editor(editor)
                window.settle()
                QGuiApplication.clipboard().setText(text)
                start = time.perf_counter()
                editor.paste()
                QApplication.processEvents()
                what = f"pasting 1 MB of {name} into the {editor.accessibleName().lower()}"
                rows.append(Row(what, 1000 * (time.perf_counter() - start), 1000))
    return rows


def opening(theme: Theme) -> list[Row]:
    """A finished candidate of 40 kB, until its last line is coloured."""
    text = "```python\n" + LINE * 1000 + "```"
    with opened(theme, lambda: ScriptedEngine(Script((ScriptedCandidate((text,)),)))) as window:
        window.generate("scripted", candidates=2)
        window.until(lambda: window.ended)
        window.settle()
        page = window.controller.window.page
        start = time.perf_counter()
        page.choose(2)
        window.until(lambda: not page.code._colouring.busy)
        return [Row("opening a finished 40 kB candidate, coloured", 1000 * (time.perf_counter() - start), 150)]


def starting() -> list[Row]:
    """A process of its own, from its first line to a painted window."""
    found = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as home:
            env = os.environ | {"BASSLINE_HOME": home}
            done = subprocess.run([sys.executable, "-c", START], env=env, capture_output=True, text=True, check=True)
            seconds, torch = done.stdout.split()
            assert torch == "False", "torch was imported before it was needed"
            found.append(1000 * float(seconds))
    return [Row("window without a model, median of 3 starts", median(found), 1500)]


def real(theme: Theme, model: str, pairs: int, tokens: int) -> list[Row]:
    """The main thread's share of the CPU at n = 8, and tokens per second with the window against without it."""
    shares, ratios = [], []
    with opened(theme, lambda: open_engine(ModelChoice(model))) as window:
        window.generate(model, candidates=8)
        window.until(lambda: window.ended, 600)
        assert window.controller.run is not None
        request = window.controller.run.request
        request = replace(request, sampling=replace(request.sampling, max_tokens=tokens))
        for pair in range(pairs):
            speeds: dict[bool, float] = {}
            for shown in (True, False) if pair % 2 == 0 else (False, True):
                finished, share = _shown(window, request) if shown else (_unseen(window, request, pair), 0.0)
                assert finished.metrics is not None
                speeds[shown] = finished.metrics.tokens_per_second or 0.0
                if shown:
                    shares.append(100 * share)
            ratios.append(speeds[True] / speeds[False])
    low, high = min(ratios), max(ratios)
    print(f"speed with the window against without: {median(ratios):.3f} ({low:.3f} to {high:.3f}, {pairs} pairs)")
    return [Row(f"main thread's share of wall time, {model}, n = 8, median of {pairs}", median(shares), 3, "%")]


def _shown(window: Window, request: Request) -> tuple[RunFinished, float]:
    """As a user has it. The share is the main thread's CPU time over wall time, while it generates."""
    last: list[RunFinished] = []
    window.controller.running.finished.connect(last.append)
    window.controller.start(request)
    window.until(lambda: window.generating, 60)
    wall, own = time.perf_counter(), time.thread_time()
    while not last:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    share = (time.thread_time() - own) / (time.perf_counter() - wall)
    window.controller.running.finished.disconnect(last.append)
    return last[0], share


def _unseen(window: Window, request: Request, pair: int) -> RunFinished:
    """The same engine and the same request; what it says goes nowhere."""
    thread = window.controller.loading.engine
    assert thread is not None
    thread._worker.submit(Generate(f"unseen-{pair}", request))
    while True:
        time.sleep(0.05)
        for batch in thread._inbox.take():
            if isinstance(batch, tuple) and isinstance(batch[-1], RunFinished):
                return batch[-1]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    prepare_environment()
    theme = Theme(QApplication(["benchmark"]))
    before = others_load()
    rows = [
        *delays(theme, 16, options.seconds, 10, 100),
        *delays(theme, 32, options.seconds, 15, 150),
        *stopping(theme),
        *closing(theme),
        *pasting(theme),
        *opening(theme),
        *starting(),
    ]
    if options.model:
        rows += real(theme, options.model, options.pairs, options.max_tokens)
    load = max(before, others_load())
    print("| promise | found | bound | |\n|---|---|---|---|")
    for row in rows:
        kept = "kept" if row.kept else "broken"
        print(f"| {row.what} | {row.found:.1f} {row.unit} | {row.bound:g} {row.unit} | {kept} |")
    print(f"\nload of others: {load:.2f} cores{', void' if load > QUIET else ''}; {facts()}")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) | {"load": load} for row in rows], indent=2))
    return 0 if all(row.kept for row in rows) else 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8, help="how long candidates stream")
    parser.add_argument("--model", default="", help="also the real engine, with this model")
    parser.add_argument("--pairs", type=int, default=10, help="turns with and without the window")
    parser.add_argument("--max-tokens", type=int, default=100)
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
