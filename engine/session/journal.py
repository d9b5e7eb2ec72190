"""The history of runs in one SQLite file: written ahead, so that a kill at any moment loses nothing that was kept.

A Journal is one connection and belongs to one thread. Window and command line may have the file open at once.
``recorder.py`` writes; whoever lists, searches or loads opens a Journal of their own.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from engine.contract import BasslineError, RunOutcome
from engine.contract.states import FINISHED
from engine.session import paths, schema
from engine.session.record import Row, StoredRun, kept
from engine.session.states import OVER, RunState

UNDO_S = 30.0
_BUSY_S = 5.0
_RUN_BITS = 20  # a row of ``words`` has the number run << 20 | candidate; candidate 0 is the prompt
_LONGEST_SEARCH = 200
_LARGEST_ID = 2**63 - 1
_ENDED_EARLY = "Bassline ended before this run did; what there was by then is here."


class HistoryUnavailable(BasslineError):
    """The history cannot be read or written now; nothing in it is harmed."""


class NotInHistory(BasslineError):
    """No run has that number."""


@dataclass(frozen=True)
class HistoryEntry:
    """One run in a list. ``finished`` candidates ended by themselves or were cut, ``tested`` ones have a verdict.

    ``began`` is in UTC.
    """

    id: int
    title: str
    began: datetime
    candidates: int
    finished: int
    tested: int
    passed: int
    state: str


def history_file() -> Path:
    return paths.data() / "history.sqlite"


class Journal:
    """``notice``: a sentence when the file was damaged or from a newer Bassline and had to be set aside; or empty."""

    def __init__(self, path: Path, check: bool = False):
        """Open, or begin, the file. ``check`` reads all of it, to notice damage early.

        Raises HistoryUnavailable when the disk does not let us.
        """
        self.path, self.notice = path, ""
        with _sentences(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = schema.connect(path, _BUSY_S, check)
            except schema.UnusableJournal as error:
                aside = schema.set_aside(path)
                self.notice = f"The history {error}; it was set aside as {aside.name}, and a new one begun."
                self._db = schema.connect(path, _BUSY_S)

    def close(self) -> None:
        self._db.close()

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What is written inside is on disk together at the end. Raises HistoryUnavailable."""
        with _sentences(self.path), schema.transaction(self._db):
            yield

    # Writing.

    def add(self, row: Row, prompt: str) -> int:
        """Keep a new run and return its number; it is unfinished as long as this process lives."""
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        values = (*row.values(), _this_process())
        with _sentences(self.path):
            id = self._db.execute(f"INSERT INTO runs ({names}, owner) VALUES ({marks}, ?)", values).lastrowid
        assert id is not None
        self._index(id, 0, prompt)
        return id

    def update(self, id: int, row: Row) -> None:
        sets = ", ".join(f"{name} = ?" for name in row)
        with _sentences(self.path):
            self._db.execute(f"UPDATE runs SET {sets} WHERE id = ?", (*row.values(), id))

    def put(self, id: int, row: Row, code: str = "") -> None:
        """A candidate as it is now; ``code`` can be searched from now on."""
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with _sentences(self.path):
            values = (id, *row.values())
            self._db.execute(f"INSERT OR REPLACE INTO candidates (run, {names}) VALUES (?, {marks})", values)
        if code:
            self._index(id, row["number"], code)

    def drop(self, id: int, numbers: Iterable[int]) -> None:
        """These candidates never began, and are none of the run's."""
        with _sentences(self.path):
            for number in numbers:
                self._db.execute("DELETE FROM candidates WHERE run = ? AND number = ?", (id, number))
                self._db.execute("DELETE FROM words WHERE rowid = ?", (id << _RUN_BITS | number,))

    def claim(self, id: int) -> None:
        """The run is this process's from now on."""
        self.update(id, {"owner": _this_process()})

    def holds(self, id: int) -> bool:
        """Whether there is such a run, deleted or not; a purge may have taken it."""
        with _sentences(self.path):
            return self._db.execute("SELECT 1 FROM runs WHERE id = ?", (id,)).fetchone() is not None

    def delete(self, id: int) -> None:
        """Take a run out of every list. ``restore`` brings it back until it is purged."""
        self.update(id, {"deleted": time.time()})

    def restore(self, id: int) -> None:
        self.update(id, {"deleted": None})

    def purge(self, older_than_s: float = UNDO_S) -> None:
        """Forget runs that were deleted that long ago, for good."""
        with _sentences(self.path):
            limit = time.time() - older_than_s
            for (id,) in self._db.execute("SELECT id FROM runs WHERE deleted <= ?", (limit,)).fetchall():
                self._db.execute("DELETE FROM runs WHERE id = ?", (id,))  # its candidates go with it
                first = id << _RUN_BITS
                self._db.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (first, first + (1 << _RUN_BITS) - 1))

    def _index(self, id: int, number: int, text: str) -> None:
        folded = _as_kept(text)
        row = id << _RUN_BITS | number
        with _sentences(self.path):
            self._db.execute("DELETE FROM words WHERE rowid = ?", (row,))
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, folded))

    # Reading.

    def entries(self, search: str = "", limit: int = 200) -> list[HistoryEntry]:
        """Newest first: the runs whose prompt or code hold every word of ``search``, letter case aside."""
        with _sentences(self.path):
            found = self._find(_as_kept(search[:_LONGEST_SEARCH]).split())
            within = "" if found is None else f" AND id IN ({', '.join(map(str, found)) or 'NULL'})"
            return self._entries(f"deleted IS NULL{within} ORDER BY id DESC LIMIT {min(limit, _LARGEST_ID)}")

    def unfinished(self) -> list[HistoryEntry]:
        """Runs that were going on when their process died, newest first."""
        with _sentences(self.path):
            owners = self._db.execute(
                f"SELECT id, owner FROM runs WHERE state NOT IN ({_listed(OVER)}) AND deleted IS NULL"
            ).fetchall()
            dead = [str(id) for id, owner in owners if not _lives(owner)]
            return self._entries(f"id IN ({', '.join(dead) or 'NULL'}) ORDER BY id DESC")

    def is_open(self, id: int) -> bool:
        """Whether a process that still lives, this one or another, is going on with the run."""
        with _sentences(self.path):
            row = self._db.execute(
                f"SELECT owner FROM runs WHERE id = ? AND state NOT IN ({_listed(OVER)})", (id,)
            ).fetchone()
        return row is not None and _lives(row[0])

    def end_unfinished(self) -> list[HistoryEntry]:
        """Runs that a dead process left behind are over now, and stopped. Gives them, newest first."""
        left = self.unfinished()
        for entry in left:
            self.update(entry.id, {"state": RunState.STOPPED, "outcome": RunOutcome.STOPPED, "reason": _ENDED_EARLY})
        return left

    def load(self, id: int) -> StoredRun:
        """Raises NotInHistory and HistoryUnavailable."""
        with _sentences(self.path):
            known = "SELECT * FROM runs WHERE id = ? AND deleted IS NULL"
            row = self._db.execute(known, (id,)).fetchone() if id <= _LARGEST_ID else None
            if row is None:
                raise NotInHistory(f"There is no run {id} in the history; `history` lists those there are.")
            candidates = self._db.execute("SELECT * FROM candidates WHERE run = ? ORDER BY number", (id,)).fetchall()
        return kept(row, candidates)

    def _entries(self, condition: str) -> list[HistoryEntry]:
        rows = self._db.execute(
            f"SELECT id, title, began, count(number), count(number) FILTER (WHERE c.state IN ({_listed(FINISHED)})),"
            " count(report), coalesce(sum(passed), 0), runs.state"
            " FROM (SELECT * FROM runs WHERE " + condition + ") AS runs"
            " LEFT JOIN candidates AS c ON c.run = id GROUP BY id ORDER BY id DESC"
        )
        return [
            HistoryEntry(id, title, datetime.fromisoformat(began).astimezone(UTC), *counts)
            for id, title, began, *counts in rows
        ]

    def _find(self, words: Sequence[str]) -> set[int] | None:
        """Runs that hold each word somewhere; None: no words, so every run does."""
        found: set[int] | None = None
        for word in words:
            # LIKE is what the trigram index answers; instr takes _ and % at their word.
            rows = self._db.execute(
                "SELECT rowid FROM words WHERE text LIKE ? AND instr(text, ?)", (f"%{word}%", word)
            ).fetchall()
            here = {row[0] >> _RUN_BITS for row in rows}
            found = here if found is None else found & here
        return found


def _as_kept(text: str) -> str:
    """As words are kept and looked for: letter case aside, and nothing in it that a database does not take."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").casefold()


def _listed(states: Iterable[str]) -> str:
    return ", ".join(f"'{state}'" for state in sorted(states))


def _this_process() -> str:
    process = psutil.Process()
    return f"{process.pid} {process.create_time():.0f}"


def _lives(owner: str) -> bool:
    """Whether the process that wrote this still runs, and is not another one with its number."""
    pid, _, created = owner.partition(" ")
    try:
        created_s: float = psutil.Process(int(pid)).create_time()
        return abs(created_s - float(created)) < 2.0
    except (psutil.Error, ValueError):
        return False


@contextlib.contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise HistoryUnavailable(f"The history {path} cannot be used: {reason}; runs are not kept.") from error
