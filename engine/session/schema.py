"""The journal's tables, how they change from release to release, and what becomes of a file that is not ours."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

_OURS = 0x4261736C  # "Basl", in the header of every file of ours


class UnusableJournal(Exception):
    """The file is damaged, no journal, or newer than this program; says which, to follow "The history"."""


def _first(db: sqlite3.Connection) -> None:
    """``words`` holds prompts and code in lower case for the search: an index of trigrams where SQLite has that."""
    db.execute(
        """
        CREATE TABLE runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            owner TEXT NOT NULL, began TEXT NOT NULL, title TEXT NOT NULL,
            request TEXT NOT NULL, tests BLOB NOT NULL, choice TEXT, loaded TEXT, versions TEXT NOT NULL,
            state TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, details TEXT NOT NULL,
            metrics TEXT, prompt_tokens INTEGER NOT NULL, first_passing_s REAL, deleted REAL
        )"""
    )
    db.execute(
        """
        CREATE TABLE candidates (
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, number INTEGER NOT NULL,
            seed TEXT NOT NULL, state TEXT NOT NULL, test_state TEXT NOT NULL, text BLOB NOT NULL,
            tokens INTEGER NOT NULL, proposed INTEGER NOT NULL, accepted INTEGER NOT NULL, mean_logprob REAL,
            stop_reason TEXT NOT NULL, started_s REAL, finished_s REAL, report TEXT, passed INTEGER NOT NULL,
            PRIMARY KEY (run, number)
        ) WITHOUT ROWID"""
    )
    try:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'trigram')")
    except sqlite3.OperationalError:  # a SQLite without it: the same questions take a scan
        db.execute("CREATE TABLE words (text TEXT NOT NULL)")


def _search(db: sqlite3.Connection) -> None:
    """Runs that go on until one passes: what was decided, and where a candidate comes from."""
    db.execute("ALTER TABLE runs ADD COLUMN decisions TEXT")
    db.execute("ALTER TABLE candidates ADD COLUMN origin TEXT")


def _comparison(db: sqlite3.Connection) -> None:
    """What the candidates were seen to do, and what the user said is right."""
    db.execute("ALTER TABLE runs ADD COLUMN comparison TEXT")


_PAUSE_S = 0.005
# The n-th makes version n of version n - 1. Never change one that was released; add another.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _search, _comparison)


def connect(path: Path, busy_s: float, check: bool = False) -> sqlite3.Connection:
    """Open or make the file and bring it up to date. Raises UnusableJournal, and sqlite3.OperationalError and
    OSError.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # prompts are nobody else's business
    db = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
    try:
        db.row_factory = sqlite3.Row
        _write_ahead(db, busy_s)
        for pragma in ("synchronous = NORMAL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        _bring_up_to_date(db)
        if check and (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise UnusableJournal(f"was damaged ({found})")
    except sqlite3.OperationalError:
        db.close()
        raise
    except sqlite3.DatabaseError as error:
        db.close()
        raise UnusableJournal(f"was damaged ({error})") from error
    except UnusableJournal:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection, busy_s: float) -> None:
    """SQLite does not always wait for its lock here, whatever the timeout: a new file may be opened twice at once."""
    until = time.monotonic() + busy_s
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_PAUSE_S)


def set_aside(path: Path) -> Path:
    """Rename the file, with what belongs to it, and give its new name."""
    stamp = f"{datetime.now():%Y-%m-%d-%H%M%S}"
    aside = path.with_name(f"{path.stem}-set-aside-{stamp}{path.suffix}")
    for number in range(2, 1000):
        if not aside.exists():
            break
        aside = path.with_name(f"{path.stem}-set-aside-{stamp}-{number}{path.suffix}")
    for ending in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{aside}{ending}")
    return aside


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite itself rolls back when the disk is full
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _bring_up_to_date(db: sqlite3.Connection) -> None:
    if _version(db) == len(MIGRATIONS):
        return
    with transaction(db):  # another process may be at it
        version = _version(db)
        for number in range(version, len(MIGRATIONS)):
            MIGRATIONS[number](db)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute(f"PRAGMA application_id = {_OURS}")


def _version(db: sqlite3.Connection) -> int:
    """The file's version, 0 for an empty one. Raises UnusableJournal when it is newer, or somebody else's."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version == 0 and not tables:
        return 0
    if db.execute("PRAGMA application_id").fetchone()[0] != _OURS:
        raise UnusableJournal("was not written by Bassline")
    if version > len(MIGRATIONS):
        raise UnusableJournal("was written by a newer Bassline")
    if not {"runs", "candidates", "words"} <= tables:
        raise UnusableJournal("was damaged (tables are missing)")
    return version
