"""The history: what goes in comes out, is found, can be deleted and undone, and outlives damage."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.contract import CandidateFinished, Request, RunFinished, TextAdded
from engine.elicitation.answers import Answer
from engine.elicitation.inputs import Input
from engine.elicitation.outcomes import Outcome
from engine.elicitation.standings import Compared, Standing
from engine.session import schema
from engine.session.candidate import Origin
from engine.session.export import export_json, export_run
from engine.session.journal import HistoryUnavailable, Journal, NotInHistory
from engine.session.record import title
from engine.session.recorder import Recorder
from engine.session.run import Run
from tests.engine.session.runs import PASS, PROVENANCE, a_full_run, finish


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.sqlite"


def keep(file: Path, *runs: Run) -> list[int]:
    recorder = Recorder(file)
    for run in runs:
        recorder.begin(run)
    assert recorder.flush()
    ids = [recorder.id_of(run) for run in runs]
    assert recorder.close()
    return [id for id in ids if id is not None]


def opened(file: Path) -> Journal:
    return Journal(file)


class TestRoundTrip:
    def test_everything_comes_back(self, file: Path) -> None:
        run = a_full_run()
        (id,) = keep(file, run)
        journal = opened(file)
        kept = journal.load(id)
        journal.close()
        assert kept.run.provenance == PROVENANCE
        assert abs(datetime.now(UTC) - kept.began) < timedelta(minutes=1)
        back = kept.run
        assert (back.request, back.tests, back.metrics) == (run.request, run.tests, run.metrics)
        assert (back.state, back.outcome, back.first_passing_s) == ("finished", "finished", 1.25)
        assert back.candidates == run.candidates  # texts, counts, reports, lamps and who is like whom
        assert back.ranking() == run.ranking()
        assert back.result() == run.result()

    def test_where_candidates_come_from_and_what_was_decided_come_back(self, file: Path) -> None:
        run = a_full_run()
        run.candidates[2].origin = Origin("repair", "Small", 1)
        run.decisions = [{"at_s": 1.0, "arm": "repair"}]
        (id,) = keep(file, run)
        journal = opened(file)
        back = journal.load(id).run
        journal.close()
        assert [c.origin for c in back.candidates.values()] == [Origin(), Origin("repair", "Small", 1), Origin()]
        assert back.result()["decisions"] == run.decisions

    def test_what_was_compared_and_answered_comes_back(self, file: Path, tmp_path: Path) -> None:
        run, given = a_full_run(), Input.of_call("f", [])
        recorder = Recorder(file)
        recorder.begin(run)
        assert recorder.flush()
        standings = {1: Standing((1, 2), 37, suggested=(5, 6)), 2: Standing((1, 2), 37, key=(0, True, 0.5))}
        run.compared(Compared(standings, {"inputs": 37}, {given: None}))
        recorder.note(run)
        answer = Answer(given, Outcome("value", 1))
        run.compared(Compared(standings, {"inputs": 37, "answers": ["1"]}, {given: answer}))
        recorder.note(run)  # an answer is written, though nothing else has changed
        id = recorder.id_of(run)
        assert recorder.close()
        assert id is not None
        journal = opened(file)
        back = journal.load(id).run
        journal.close()
        assert back.comparison == run.comparison
        assert back.candidates == run.candidates
        assert back.ranking() == run.ranking()
        assert back.candidates[2].likeness == "same behaviour as 1 on 37 inputs"
        assert back.candidates[1].agreement == "agrees with 5 of 6 suggested tests"
        export_json(back, tmp_path / "run.json")
        assert json.loads((tmp_path / "run.json").read_text())["behaviour"] == {"inputs": 37, "answers": ["1"]}

    @pytest.mark.parametrize("text", ["\ud800 half a pair", "\0 nul", "\r\nx\r", "\ufeff\u2028", "\U0001f600\x1b[31m"])
    def test_any_text(self, file: Path, text: str) -> None:
        run = Run("r", Request("p " + text, 1, 1), tests=text)
        run.apply(CandidateFinished("r", 1, "done", "stop", text, 1, 0, 0, None, 1.0))
        run.apply(RunFinished("r", "failed", None, "why " + text, "details " + text))
        (id,) = keep(file, run)
        journal = opened(file)
        back = journal.load(id).run
        journal.close()
        assert (back.request.prompt, back.tests, back.candidates[1].text) == ("p " + text, text, text)

    def test_a_run_of_the_past_can_be_exported(self, file: Path, tmp_path: Path) -> None:
        (id,) = keep(file, a_full_run())
        journal = opened(file)
        kept = journal.load(id)
        journal.close()
        names = {path.name for path in export_run(kept.run, tmp_path / "out")}
        assert names == {"best.py", "candidate-1.py", "candidate-2.py", "candidate-3.py", "tests.py", "result.json"}
        record = json.loads((tmp_path / "out" / "result.json").read_text())
        assert (record["models"]["draft"], record["loaded"]["precision"]) == ("d", "int8")
        assert record["versions"] == {"python": "3.99"}  # of then, not of now

    def test_a_run_goes_on_after_the_restart(self, file: Path) -> None:
        (id,) = keep(file, a_full_run())
        journal = opened(file)
        run = journal.load(id).run
        recorder = Recorder(file)
        recorder.resume(run, id)
        run.reopen(run.more(2))
        recorder.note(run)
        finish(run, 4, "def f(): return 4")
        recorder.note(run)
        finish(run, 5, "def f(): return 5")
        run.apply(RunFinished(run.name, "finished"))
        run.record(5, PASS, 1.0)
        recorder.note(run)
        assert recorder.close()
        assert journal.load(id).run.candidates == run.candidates
        assert [(e.id, e.candidates, e.passed) for e in journal.entries()] == [(id, 5, 2)]
        journal.close()


class TestWhatIsWrittenWhen:
    def test_text_at_most_every_two_seconds_and_ends_at_once(self, file: Path) -> None:
        clock, run = Clock(), Run("r", Request("p", 1, 2))
        recorder, journal = Recorder(file, clock=clock), opened(file)
        recorder.begin(run)

        def on_disk() -> list[tuple[str, str]]:
            recorder.note(run)
            assert recorder.flush()
            rows = journal._db.execute("SELECT state, text FROM candidates ORDER BY number")
            return [(state, text.decode()) for state, text in rows]

        run.apply(TextAdded("r", 1, "a", 1, 0.1))
        assert on_disk() == [("running", "a"), ("queued", "")]  # its state has changed
        run.apply(TextAdded("r", 1, "b", 2, 0.2))
        assert on_disk() == [("running", "a"), ("queued", "")]
        clock.now += 1.9
        assert on_disk()[0] == ("running", "a")
        clock.now += 0.1
        assert on_disk()[0] == ("running", "ab")
        run.apply(TextAdded("r", 1, "c", 3, 0.3))
        run.apply(CandidateFinished("r", 2, "done", "stop", "all", 3, 0, 0, None, 0.4))
        assert on_disk() == [("running", "ab"), ("done", "all")]
        assert recorder.close()
        journal.close()

    def test_nothing_new_writes_nothing(self, file: Path) -> None:
        wrote: list[None] = []
        recorder, run = Recorder(file, wrote=lambda: wrote.append(None)), a_full_run()
        recorder.begin(run)
        recorder.flush()
        before = len(wrote)
        for _ in range(100):
            recorder.note(run)
        recorder.flush()
        assert len(wrote) == before
        recorder.close()

    def test_runs_that_are_not_kept(self, file: Path) -> None:
        recorder = Recorder(file)
        recorder.note(a_full_run())
        recorder.close()
        journal = opened(file)
        assert journal.entries() == []
        journal.close()

    def test_the_callers_thread_never_writes(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        threads: set[str] = set()
        connect = schema.connect

        def watched(*arguments: object) -> sqlite3.Connection:
            db = connect(*arguments)
            db.set_trace_callback(lambda _: threads.add(threading.current_thread().name))
            return db

        monkeypatch.setattr(schema, "connect", watched)
        keep(file, a_full_run())
        assert threads == {"history"}


class TestList:
    def test_newest_first_with_counts(self, file: Path) -> None:
        untested = Run("r", Request("\n\n  Second line first\nmore", 1, 4))
        keep(file, a_full_run(), untested)
        journal = opened(file)
        second, first = journal.entries()
        journal.close()
        assert (first.title, first.candidates, first.finished, first.passed) == ("Write f.", 3, 3, 1)
        assert (first.tested, first.state) == (2, "finished")
        assert (second.title, second.candidates) == ("Second line first", 4)
        assert (second.finished, second.tested) == (0, 0)
        assert first.began <= second.began
        assert title(" \n") == ""

    @pytest.mark.parametrize("indexed", [True, False])
    def test_search(self, file: Path, indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if not indexed:
            later = schema.MIGRATIONS[1:]
            monkeypatch.setattr(schema, "MIGRATIONS", (lambda db: schema._first(_WithoutTrigrams(db)), *later))
        squares, primes = a_full_run("Squares of ÄPFEL"), a_full_run("Primes 100%")
        finish_extra = CandidateFinished("r", 9, "done", "stop", "```\nroman_to_int = 'ß'\n```", 1, 0, 0, None, 1.0)
        primes.reopen(primes.more(1))
        primes.apply(finish_extra)
        first, second = keep(file, squares, primes)
        journal = opened(file)
        for search, found in (
            ("", [second, first]),
            ("squares", [first]),
            ("äpfel", [first]),
            ("def return", [second, first]),
            ("primes SQUARES", []),
            ("roman_to_int", [second]),
            ("roman_to_inx", []),
            ("romanAtoBint", []),
            ("romantoint", []),
            ("0%", [second]),
            ("%", [second]),
            ("SS", [second]),
            ("'; DROP TABLE runs; --", []),
            ('"', []),
            ("x" * 100_000, []),
        ):
            assert [entry.id for entry in journal.entries(search)] == found, search
        assert [entry.id for entry in journal.entries(limit=1)] == [second]
        journal.close()


class _WithoutTrigrams:
    def __init__(self, db: sqlite3.Connection):
        self._db = db

    def execute(self, statement: str) -> object:
        if "VIRTUAL" in statement:
            raise sqlite3.OperationalError("no such module: fts5")
        return self._db.execute(statement)


class TestDeleting:
    def test_undo_and_then_for_good(self, file: Path) -> None:
        first, second = keep(file, a_full_run("first one"), a_full_run("second one"))
        journal = opened(file)
        journal.delete(first)
        assert [entry.id for entry in journal.entries()] == [second]
        assert [entry.id for entry in journal.entries("first")] == []
        with pytest.raises(NotInHistory, match=f"no run {first}"):
            journal.load(first)
        journal.purge()  # too early
        journal.restore(first)
        assert [entry.id for entry in journal.entries("first")] == [first]
        journal.delete(first)
        journal.purge(older_than_s=0)
        journal.restore(first)
        assert [entry.id for entry in journal.entries()] == [second]
        for table in ("candidates WHERE run", "words WHERE rowid >> 20"):
            assert journal._db.execute(f"SELECT count(*) FROM {table} = {first}").fetchone()[0] == 0
            assert journal._db.execute(f"SELECT count(*) FROM {table} = {second}").fetchone()[0] > 0
        journal.close()

    def test_code_is_searched_when_its_candidate_has_ended(self, file: Path) -> None:
        run = Run("r", Request("p", 1, 1))
        run.apply(TextAdded("r", 1, "```python\nzebra = 1\n", 5, 0.1))
        keep(file, run)
        journal = opened(file)
        assert journal.entries("zebra") == []
        journal.close()

    def test_for_good_takes_nothing_of_the_next_run(self, file: Path) -> None:
        first, second = keep(file, a_full_run("first one"), a_full_run("second one"))
        journal = opened(file)
        journal.delete(first)
        journal.purge(older_than_s=0)
        assert [entry.id for entry in journal.entries("second")] == [second]
        journal.close()

    def test_a_deleted_run_is_not_told_of_as_cut_short(self, file: Path) -> None:
        first, second = keep(file, a_full_run("first one"), a_full_run("second one"))
        journal = opened(file)
        journal._db.execute("UPDATE runs SET state = 'generating', owner = '0 0'")
        journal.delete(first)
        assert [entry.id for entry in journal.unfinished()] == [second]
        journal.close()

    def test_a_deleted_run_is_gone_after_a_later_start(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (id,) = keep(file, a_full_run())
        journal = opened(file)
        journal._db.execute("UPDATE runs SET deleted = 1.0")
        keep(file)
        journal.restore(id)
        assert journal.entries() == []
        journal.close()


class TestDamage:
    def test_a_broken_file_is_set_aside(self, file: Path) -> None:
        file.parent.mkdir()
        file.write_bytes(b"this is no database, but somebody may want it back" * 100)
        journal = opened(file)
        assert journal.notice.startswith("The history was damaged (file is not a database); it was set aside as ")
        assert journal.entries() == []
        journal.close()
        (aside,) = file.parent.glob("history-set-aside-*.sqlite")
        assert aside.read_bytes().startswith(b"this is no database")
        assert aside.name in journal.notice

    def test_a_damaged_page_is_noticed_at_the_start(self, file: Path) -> None:
        keep(file, *(a_full_run(f"number {n} " + "x" * 3000) for n in range(20)))
        data = bytearray(file.read_bytes())
        data[8192:20480] = os.urandom(12288)
        file.write_bytes(data)
        said: list[str] = []
        recorder, run = Recorder(file, said.append), a_full_run("again")
        recorder.begin(run)
        assert recorder.close()
        assert len(said) == 1
        assert "was damaged" in said[0]
        journal = opened(file)
        assert [entry.title for entry in journal.entries()] == ["again"]
        journal.close()
        assert len(list(file.parent.glob("history-set-aside-*.sqlite"))) == 1

    @pytest.mark.parametrize(
        ("statement", "words"),
        [
            ("PRAGMA user_version = 99", "was written by a newer Bassline"),
            ("PRAGMA application_id = 5", "was not written by Bassline"),
            ("DROP TABLE candidates", "tables are missing"),
        ],
    )
    def test_a_file_that_is_not_ours_to_write(self, file: Path, statement: str, words: str) -> None:
        (id,) = keep(file, a_full_run())
        db = sqlite3.connect(file, isolation_level=None)
        db.execute(statement)
        db.close()
        journal = opened(file)
        assert words in journal.notice
        assert journal.entries() == []
        journal.close()
        (aside,) = file.parent.glob("history-set-aside-*.sqlite")
        db = sqlite3.connect(aside)
        assert db.execute("SELECT id FROM runs").fetchall() == [(id,)]
        db.close()

    def test_an_older_file_is_brought_up_to_date(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (id,) = keep(file, a_full_run())
        added = (*schema.MIGRATIONS, lambda db: db.execute("ALTER TABLE runs ADD COLUMN star INTEGER DEFAULT 7"))
        monkeypatch.setattr(schema, "MIGRATIONS", added)
        journal = opened(file)
        assert journal.notice == ""
        assert journal.load(id).run.candidates == a_full_run().candidates
        assert journal._db.execute("SELECT star FROM runs").fetchone()[0] == 7
        journal.close()

    def test_a_file_from_before_candidates_were_compared(self, file: Path) -> None:
        (id,) = keep(file, a_full_run())
        db = sqlite3.connect(file)
        db.execute("ALTER TABLE runs DROP COLUMN comparison")
        db.execute("PRAGMA user_version = 2")
        db.commit()
        db.close()
        journal = opened(file)
        run = journal.load(id).run
        assert (journal.notice, run.candidates, run.comparison) == ("", a_full_run().candidates, Compared())
        assert "behaviour" not in run.result()
        recorder = Recorder(file)
        recorder.resume(run, id)
        run.compared(Compared({1: Standing((1,), 3)}))
        recorder.note(run)
        assert recorder.close()
        assert journal.load(id).run.comparison == run.comparison
        journal.close()

    def test_a_new_file_that_another_process_is_just_making_is_waited_for(self, file: Path) -> None:
        file.parent.mkdir()
        other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE begun (column)")
        threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
        opened(file).close()
        other.close()

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("a file")
        said: list[str] = []
        recorder, run = Recorder(tmp_path / "data" / "history.sqlite", said.append), a_full_run()
        recorder.begin(run)
        recorder.flush()
        recorder.note(run)
        assert recorder.close()
        assert len(said) == 1  # once, not at every write
        assert "runs are not kept" in said[0]
        with pytest.raises(HistoryUnavailable):
            opened(tmp_path / "data" / "history.sqlite")

    def test_a_full_disk_for_a_while_costs_nothing(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        full, said = [True], []
        put = Journal.put

        def refuse(journal: Journal, *arguments: object) -> None:
            if full:
                raise HistoryUnavailable("The history cannot be used: database or disk is full.")
            put(journal, *arguments)

        monkeypatch.setattr(Journal, "put", refuse)
        run = Run("r", Request("p", 1, 2))
        recorder = Recorder(file, said.append)
        recorder.begin(run)
        recorder.flush()
        finish(run, 1, "a = 1")
        recorder.note(run)
        recorder.flush()
        full.clear()
        finish(run, 2, "b = 2")
        recorder.note(run)
        recorder.flush()
        id = recorder.id_of(run)
        assert recorder.close()
        journal = opened(file)
        assert id is not None
        assert [c.code for c in journal.load(id).run.candidates.values()] == ["a = 1\n", "b = 2\n"]
        assert len(journal.entries()) == len(said) == 1
        journal.close()

    def test_nobody_else_may_read_it(self, file: Path) -> None:
        keep(file, a_full_run())
        assert file.stat().st_mode & 0o777 == 0o600


def test_window_and_command_line_write_at_once(file: Path) -> None:
    recorders = [Recorder(file), Recorder(file)]
    runs = [[Run("r", Request(f"{who} {number}", 1, 4)) for number in range(20)] for who in ("window", "command line")]
    for both in zip(*runs, strict=True):
        for recorder, run in zip(recorders, both, strict=True):
            recorder.begin(run)
            for number in range(1, 5):
                finish(run, number, f"x = {number}")
                recorder.note(run)
    assert all(recorder.close() for recorder in recorders)
    journal = Journal(file, check=True)
    entries = journal.entries()
    assert sorted(entry.title for entry in entries) == sorted(run.request.prompt for half in runs for run in half)
    assert {entry.finished for entry in entries} == {4}
    journal.close()


KILLED = """
import sys, threading, time
from pathlib import Path
from engine.contract import CandidateFinished, Request, RunStarted, TextAdded
from engine.session.recorder import Recorder
from engine.session.run import Run

run = Run("r", Request("Write f.", 7, 16), "assert 1")
recorder = Recorder(Path(sys.argv[1]))
recorder.begin(run)
for number in range(1, 17):
    for piece in range(30):
        for other in range(number, 17):
            run.apply(TextAdded("r", other, f"{piece} ", piece, 0.1))
        recorder.note(run)
    run.apply(CandidateFinished("r", number, "done", "stop", f"```\\nx = {number}\\n```\\n" * 50, 9, 0, 0, -1.0, 1.0))
    recorder.note(run)
    recorder.flush()
    print(number, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("after", [1, 7, 16])
def test_kill_9_loses_no_finished_candidate(file: Path, after: int) -> None:
    """A real kill in the middle of writing, with sixteen candidates."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(file)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(after)]
        child.kill()
        told += [int(line) for line in child.stdout.read().split()]
    journal = Journal(file, check=True)
    assert journal.notice == ""
    (entry,) = journal.end_unfinished()
    assert journal.end_unfinished() == []
    run = journal.load(entry.id).run
    journal.close()
    done = {number for number, candidate in run.candidates.items() if candidate.state == "done"}
    assert done >= set(told)
    assert all(run.candidates[n].text == f"```\nx = {n}\n```\n" * 50 for n in told)
    assert {c.state for c in run.candidates.values()} <= {"done", "stopped"}
    assert (len(run.candidates), run.state) == (16, "stopped")
    assert "ended before this run did" in run.reason


def test_a_run_of_a_living_process_is_not_recovered(file: Path) -> None:
    recorder, run = Recorder(file), Run("r", Request("p", 1, 1))
    recorder.begin(run)
    recorder.flush()
    journal = opened(file)
    assert journal.unfinished() == []
    journal._db.execute("UPDATE runs SET owner = '1 0'")  # a process with that number, but another one
    assert [entry.title for entry in journal.unfinished()] == ["p"]
    left: list[int] = []
    recorder.recover(lambda entries: left.extend(entry.id for entry in entries))
    recorder.close()
    assert left == [1]
    journal.close()


def test_a_run_is_open_while_somebody_goes_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    run = Run("r", Request("p", 7, 1))
    recorder = Recorder(path)
    recorder.begin(run)
    assert recorder.flush()
    journal = Journal(path)
    assert journal.is_open(1)
    journal.update(1, {"owner": "999999 0"})  # a process that died
    assert not journal.is_open(1)
    journal.claim(1)
    run.apply(RunFinished("r", "stopped"))
    recorder.note(run)
    assert recorder.close()
    assert not journal.is_open(1)
    assert not journal.is_open(2)
    journal.close()


def test_a_run_that_is_held_is_open_whatever_its_state(file: Path) -> None:
    recorder, run = Recorder(file), Run("r", Request("p", 7, 1))
    recorder.begin(run)
    recorder.hold(run)
    run.apply(RunFinished("r", "finished"))
    recorder.note(run)
    recorder.flush()
    journal = opened(file)
    assert journal.is_open(1)
    assert journal.load(1).run.ended  # for whoever reads it
    recorder.release(run)
    recorder.flush()
    assert not journal.is_open(1)
    assert journal.load(1).run.outcome == "finished"
    recorder.hold(run)
    recorder.flush()
    journal._db.execute("UPDATE runs SET owner = '1 0'")  # its process was killed
    assert [entry.id for entry in journal.end_unfinished()] == [1]
    assert recorder.close()
    assert not journal.is_open(1)
    journal.close()


def test_a_run_that_was_deleted_for_good_meanwhile_takes_no_other_with_it(file: Path) -> None:
    """Somebody else does, in another process, while both are written."""
    said: list[str] = []
    recorder, gone, other = Recorder(file, said.append), Run("g", Request("p", 7, 1)), Run("o", Request("q", 7, 1))
    recorder.begin(gone)
    recorder.begin(other)
    recorder.flush()
    journal = opened(file)
    journal.delete(1)
    journal.purge(older_than_s=0.0)
    finish(gone, 1, "x = 1")
    finish(other, 1, "y = 1")
    recorder.note(gone)
    recorder.note(other)
    recorder.flush()
    assert said == []
    assert [(entry.id, entry.finished) for entry in journal.entries()] == [(2, 1)]
    assert (recorder.id_of(gone), recorder.id_of(other)) == (None, 2)
    gone.apply(RunFinished("g", "finished"))
    recorder.note(gone)
    assert recorder.close()
    assert said == []
    journal.close()


@pytest.mark.parametrize("id", [2, 0, 2**63 - 1, 2**63, 10**30])
def test_a_number_that_no_run_has(id: int, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "h")
    with pytest.raises(NotInHistory, match=f"There is no run {id} in the history"):
        journal.load(id)
    journal.close()


def test_whatever_is_typed_can_be_looked_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "h")
    for search in ("\udcff", "a\0b", "%", "_", "'", '"', "\N{GREEK SMALL LETTER FINAL SIGMA}"):
        assert journal.entries(search) == []
    assert journal.entries(limit=10**30) == []
    journal.close()
