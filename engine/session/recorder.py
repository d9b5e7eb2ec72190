"""Keeps runs in the journal while they go on. Writing happens on a thread of its own, in the order of the calls.

Whoever owns a run calls ``note`` after every change, as often as they like: it looks at what is new, takes that along
and returns. A candidate's end and every verdict are written at once, growing text every 2 s.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from engine.contract import BasslineError, RunOutcome
from engine.session.candidate import Candidate
from engine.session.journal import HistoryEntry, Journal
from engine.session.record import Row, candidate_row, first_row, run_row
from engine.session.run import Run
from engine.session.states import RunState

TEXT_EVERY_S = 2.0
CLOSE_S = 5.0

_Mark = tuple[Any, ...]


@dataclass
class _Noted:
    """A run, and how much of it was handed over. ``id`` is set on the writer's thread, as are ``lost``: it could not
    write, and ``deleted``: there is no such run in the history any more. ``held``: the run is open, whatever its state.
    """

    first: Row
    id: int | None = None
    run: _Mark = ()
    candidates: dict[int, _Mark] = field(default_factory=dict)
    text_at: float = float("-inf")
    lost: bool = False
    deleted: bool = False
    held: bool = False


@dataclass(frozen=True)
class _Changes:
    """What is new in a run; ``prompt`` only matters when it is added."""

    noted: _Noted
    row: Row
    candidates: Sequence[Candidate]
    prompt: str
    gone: Sequence[int] = ()  # numbers that the run has no longer

    def __call__(self, journal: Journal) -> None:
        if self.noted.id is None and not self.row:
            return  # what it belongs to could not be written; all of it will come once more
        if self.noted.id is None:
            self.noted.id = journal.add(self.noted.first | self.row, self.prompt)
        elif not journal.holds(self.noted.id):  # deleted meanwhile, here or by another process
            self.noted.deleted = True
            return
        elif self.row:
            journal.update(self.noted.id, self.row)
        journal.drop(self.noted.id, self.gone)
        for candidate in self.candidates:
            journal.put(self.noted.id, candidate_row(candidate), candidate.code if candidate.ended else "")


_Job = Callable[[Journal], object]


class Recorder:
    """``notify`` gets a sentence when the history cannot be kept or had to be set aside; ``wrote`` is called after
    every write. Both are called on the writer's thread.
    """

    def __init__(
        self,
        path: Path,
        notify: Callable[[str], None] = lambda sentence: None,
        wrote: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._path, self._notify, self._wrote, self._clock = path, notify, wrote, clock
        self._noted: WeakKeyDictionary[Run, _Noted] = WeakKeyDictionary()
        self._jobs: queue.SimpleQueue[_Job | threading.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="history", daemon=True)
        self._thread.start()

    def begin(self, run: Run) -> None:
        """Keep this run from now on, with the provenance it has by now."""
        self._noted[run] = _Noted(first_row(run))
        self.note(run)

    def resume(self, run: Run, id: int) -> None:
        """Run ``id`` of the history goes on as ``run``: what is new belongs there."""
        self._noted[run] = _Noted({}, id, _run_mark(run), {n: _mark(c) for n, c in run.candidates.items()})
        self._jobs.put(lambda journal: journal.claim(id))

    def hold(self, run: Run) -> None:
        """Until ``release``, or the end of this process, nobody else goes on with the run: it may wait for a model, or
        for verdicts, when the engine has said its last word. To be called after ``begin`` or ``resume``.
        """
        self._set_held(run, True)

    def release(self, run: Run) -> None:
        """It is as its state says."""
        self._set_held(run, False)

    def _set_held(self, run: Run, held: bool) -> None:
        noted = self._noted.get(run)
        if noted is not None and noted.held != held:
            noted.held, noted.run = held, ()
            self.note(run)

    def note(self, run: Run) -> None:
        """Take along what is new in ``run``; nothing happens for one that is not kept. Costs microseconds."""
        noted = self._noted.get(run)
        if noted is None or noted.deleted:
            return
        if noted.lost:  # the disk may have room again: everything once more
            noted.run, noted.candidates, noted.text_at, noted.lost = (), {}, float("-inf"), False
        text_is_due = self._clock() - noted.text_at >= TEXT_EVERY_S
        news = [c for n, c in run.candidates.items() if _news(noted.candidates.get(n), _mark(c), text_is_due)]
        mark = _run_mark(run)
        gone = [number for number in noted.candidates if number not in run.candidates]
        if not news and not gone and mark == noted.run:
            return
        if text_is_due:
            noted.text_at = self._clock()
        row = run_row(run) if mark != noted.run else {}
        if row and noted.held and run.ended:
            row |= {"state": RunState.WAITING, "outcome": RunOutcome.NONE}
        noted.run = mark
        for number in gone:
            del noted.candidates[number]
        noted.candidates |= {candidate.number: _mark(candidate) for candidate in news}
        frozen = [replace(candidate, _pieces=[candidate.text]) for candidate in news]
        self._jobs.put(_Changes(noted, row, frozen, run.request.prompt, gone))

    def keeps(self, run: Run) -> bool:
        """Whether it was begun or resumed here."""
        return run in self._noted

    def id_of(self, run: Run) -> int | None:
        """Its number in the history, once it is there."""
        noted = self._noted.get(run)
        return noted.id if noted and not noted.deleted else None

    def delete(self, id: int) -> None:
        self._jobs.put(lambda journal: journal.delete(id))

    def restore(self, id: int) -> None:
        self._jobs.put(lambda journal: journal.restore(id))

    def recover(self, then: Callable[[list[HistoryEntry]], None]) -> None:
        """End the runs that a dead process left behind; ``then`` gets them on the writer's thread, if any."""

        def end(journal: Journal) -> None:
            if left := journal.end_unfinished():
                then(left)

        self._jobs.put(end)

    def purge(self) -> None:
        """Forget for good what was deleted a while ago."""
        self._jobs.put(lambda journal: journal.purge())

    def flush(self, timeout_s: float = CLOSE_S) -> bool:
        """Wait until everything handed over so far was written; false if that takes too long."""
        done = threading.Event()
        self._jobs.put(done)
        return done.wait(timeout_s)

    def close(self) -> bool:
        """Write what is left and end the thread; false if it did not end within 5 seconds."""
        for run, noted in self._noted.items():
            self.release(run)
            if noted.lost:
                self.note(run)
        self._jobs.put(None)
        self._thread.join(CLOSE_S)
        return not self._thread.is_alive()

    # On the writer's thread.

    def _write(self) -> None:
        journal: Journal | None = None
        complaint = ""
        batch: list[_Job | threading.Event | None] = [Journal.purge]
        while True:
            work = [job for job in batch if callable(job)]
            fresh = [job.noted for job in work if isinstance(job, _Changes) and job.noted.id is None]
            try:
                journal = journal or self._open()
                self._do(journal, work)
                complaint = ""
            except BasslineError as error:
                _take_back(work, fresh)
                if str(error) != complaint:
                    complaint = str(error)
                    self._notify(complaint)
            for job in batch:
                if isinstance(job, threading.Event):
                    job.set()
            if None in batch:
                break
            batch = self._waiting()
        if journal is not None:
            journal.close()

    def _open(self) -> Journal:
        journal = Journal(self._path, check=True)
        if journal.notice:
            self._notify(journal.notice)
        return journal

    def _do(self, journal: Journal, work: Sequence[_Job]) -> None:
        if work:
            with journal.all_or_nothing():
                for job in work:
                    job(journal)
            self._wrote()

    def _waiting(self) -> list[_Job | threading.Event | None]:
        """All that waits; at least one."""
        batch = [self._jobs.get()]
        while not self._jobs.empty():
            batch.append(self._jobs.get())
        return batch


def _take_back(work: Sequence[_Job], fresh: Sequence[_Noted]) -> None:
    """Nothing of this was written: the next note of these runs tells everything once more."""
    for noted in fresh:
        noted.id = None
    for job in work:
        if isinstance(job, _Changes):
            job.noted.lost = True


def _run_mark(run: Run) -> _Mark:
    return (
        run.request,
        run.tests,
        run.state,
        run.outcome,
        run.metrics,
        run.prompt_tokens,
        run.first_passing_s,
        len(run.decisions),
        run.comparison,
    )


def _mark(candidate: Candidate) -> _Mark:
    """What is worth writing at once, and last what can wait: the growing text."""
    settled = candidate.test_state if candidate.report else ""
    return candidate.ended, candidate.state, settled, candidate.report, candidate.tokens


def _news(before: _Mark | None, now: _Mark, text_is_due: bool) -> bool:
    return before is None or (now != before if text_is_due else now[:-1] != before[:-1])
