"""Which models are loaded, are being loaded, or could not be."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal, Slot

from app.system.engine_thread import EngineThread, EventBatch
from app.system.engines import kind_of
from engine.contract import (
    Cancel,
    Closed,
    Engine,
    Load,
    LoadFailed,
    Loading,
    Message,
    ModelChoice,
    Ready,
)

OpenEngine = Callable[[ModelChoice], Engine]


@dataclass(frozen=True)
class PendingLoad:
    """A load that has no answer yet.

    ``quiet``: nobody asked for it, so nobody is told when it fails. ``again``: what to load if it fails, since somebody
    has asked for it meanwhile and a quiet load touches no network.
    """

    choice: ModelChoice
    quiet: bool
    again: ModelChoice | None = None


class ModelLoadController(QObject):
    """Owns the engine and its thread; what is not about loading is passed on by ``received``.

    A load that fails or is cancelled leaves the models that were there before it: they are asked for again, in the
    background.
    """

    changed = Signal()
    staged = Signal(object)  # Loading
    ready_for = Signal(object)  # the ModelChoice that is loaded now
    failed = Signal(object)  # LoadFailed, of a load that somebody asked for
    received = Signal(tuple)  # events of a run that came together
    drained = Signal(bool)  # after each tick that brought anything: whether that was more than text and totals

    def __init__(self, open_engine: OpenEngine, parent: QObject | None = None):
        super().__init__(parent)
        self.open_engine = open_engine
        self.engine: EngineThread | None = None
        self.ready: Ready | None = None
        self.loaded: ModelChoice | None = None
        self.stage: Loading | None = None
        self._kind = ""
        self._due: deque[PendingLoad] = deque()
        self._left: list[EngineThread] = []  # that did not listen; kept until their threads end

    @property
    def busy(self) -> bool:
        """Somebody waits for a load."""
        return any(not wanted.quiet for wanted in self._due)

    @property
    def wanted(self) -> ModelChoice | None:
        """What somebody waits for."""
        return self._due[-1].choice if self._due and not self._due[-1].quiet else None

    def loads_other(self, choice: ModelChoice) -> bool:
        """Somebody waits for a load, and of other models than these."""
        return self.wanted is not None and not _same(choice, self.wanted)

    @property
    def preloading(self) -> ModelChoice | None:
        """What is being loaded without anybody waiting for it."""
        return self._due[-1].choice if self._due and not self.busy else None

    def has(self, choice: ModelChoice) -> bool:
        """These very models are there, and their engine listens."""
        alive = self.engine is not None and self.engine.alive
        return alive and self.ready is not None and not self._due and _same(choice, self.loaded)

    def load(self, choice: ModelChoice, quiet: bool = False) -> None:
        """Answered by ``ready_for`` or ``failed``. A load in the background that is on its way to the same models is
        joined; any other is given up. A quiet load touches no network."""
        if self._due and _same(choice, self._due[-1].choice):
            last = self._due.pop()
            again = choice if not quiet and last.choice.offline and not choice.offline else last.again
            self._due.append(PendingLoad(last.choice, last.quiet and quiet, again))
        else:
            if self._due:
                self._send(Cancel())
            self._open(choice)
            choice = replace(choice, offline=choice.offline or quiet)
            self._due.append(PendingLoad(choice, quiet))
            self._send(Load(choice))
        self.changed.emit()

    def cancel(self) -> None:
        if self._due:
            self._send(Cancel())

    def submit(self, message: Message) -> None:
        """For the engine that is there; without one it is lost, as nothing could answer."""
        self._send(message)

    def close(self) -> bool:
        """End every engine; false if a thread would not."""
        engines = [*self._left, *([self.engine] if self.engine else [])]
        ends = [engine.close() for engine in engines]  # every one of them, also after one that would not
        return all(ends)

    def abandon(self) -> None:
        """Go on without an engine that does not answer. What it still owes has failed; the next load opens another."""
        if self.engine is not None:
            engine, self.engine = self.engine, None
            self._left.append(engine)
            engine.abandon()
            engine.received.disconnect(self._receive)
            engine.drained.disconnect(self.drained)

    def _open(self, choice: ModelChoice) -> None:
        kind = kind_of(choice)
        if self.engine is not None and self.engine.alive and kind == self._kind:
            return
        self.abandon()  # of another kind, or broken; waiting for its end would stop the window
        for engine in [engine for engine in self._left if engine.finished]:
            self._left.remove(engine)
            engine.deleteLater()
        self.ready = self.loaded = None
        self._due.clear()
        self._kind = kind
        self.engine = EngineThread(lambda: self.open_engine(choice), self)
        self.engine.received.connect(self._receive)
        self.engine.drained.connect(self.drained)

    def _send(self, message: Message) -> None:
        if self.engine is not None:
            self.engine.submit(message)

    @Slot(tuple)
    def _receive(self, events: EventBatch) -> None:
        match event := events[-1]:
            case Loading():
                self.stage = event
                self.staged.emit(event)
            case Ready():
                wanted = self._due.popleft()
                self.ready, self.loaded, self.stage = event, wanted.choice, None
                self.ready_for.emit(wanted.choice)
                self.changed.emit()
            case LoadFailed():
                self._failed(event)
            case Closed():
                self.ready = self.loaded = None
                self._due.clear()
                self.changed.emit()
            case _:
                self.received.emit(events)

    def _failed(self, event: LoadFailed) -> None:
        wanted = self._due.popleft() if self._due else None
        if wanted is not None and wanted.again is not None and not event.cancelled:
            self.load(wanted.again)
            return
        before, self.loaded, self.ready, self.stage = self.loaded, None, None, None
        if before is not None and not self._due and not (wanted and _same(wanted.choice, before)):
            self.load(before, quiet=True)
        if wanted is None or not wanted.quiet:
            self.failed.emit(event)
        self.changed.emit()


def _same(one: ModelChoice, other: ModelChoice | None) -> bool:
    """The same models in the same form, wherever they came from."""
    return other is not None and replace(one, offline=False) == replace(other, offline=False)
