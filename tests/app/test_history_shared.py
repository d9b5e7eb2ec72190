"""One history and two that write it: what is still being written is read, but neither taken up nor deleted."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from engine.session.journal import HistoryUnavailable, Journal
from engine.session.record import candidate_row
from engine.session.recorder import Recorder
from tests.app.stage import Stage
from tests.app.test_history import choose, notice_buttons, opened_panel, written
from tests.engine.session.runs import a_full_run

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = "Another Bassline is still writing this run; stop it there first, or wait."
WRITER = """
import sys
from pathlib import Path
from engine.contract import CandidateFinished, Request, RunFinished
from engine.session.recorder import Recorder
from engine.session.run import Run

run, recorder = Run("x", Request("Write a parser", 1, 2), "assert f()"), Recorder(Path(sys.argv[1]))

def finished(number):
    run.apply(CandidateFinished("x", number, "done", "stop", f"```\\nx = {number}\\n```", 9, 0, 0, -1.0, 1.0))
    recorder.note(run)
    recorder.flush()
    print(number, flush=True)

recorder.begin(run)
finished(1)
sys.stdin.readline()
finished(2)
run.apply(RunFinished("x", "finished"))
recorder.note(run)
recorder.close()
"""


class Writer:
    """Another process, as the command line is one, that writes a run of two candidates."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process

    def has_written(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def finish(self) -> None:
        self._process.communicate("\n")


@pytest.fixture
def writer(on: Stage) -> Iterator[Writer]:
    written(on).close()  # the file is there
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(on.controller.history._file)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        result = Writer(process)
        assert result.has_written() == "1"
        yield result
        process.kill()


def states(on: Stage) -> list[str]:
    journal = Journal(on.controller.history._file)
    run = journal.load(1).run
    journal.close()
    return [candidate.state for candidate in run.candidates.values()]


def open_it(on: Stage) -> None:
    on.controller.history.open(1)
    QApplication.processEvents()


@pytest.mark.parametrize("way", ["_on", "_again"])
def test_a_run_that_another_process_writes_can_only_be_read(on: Stage, writer: Writer, way: str) -> None:
    prompt = on.window.prompt.text()
    open_it(on)
    run, strip = on.controller.run, on.controller.history._strip
    assert run is not None
    assert run.candidates[1].code == "x = 1\n"
    getattr(strip, way).click()
    assert on.window.notice.sentence == ELSEWHERE
    assert on.controller.history.past is not None
    assert not strip.isHidden()
    assert on.window.prompt.text() == prompt
    assert not on.controller.situation().busy
    assert not on.controller.history._recorder.keeps(run)
    writer.finish()
    assert states(on) == ["done", "done"]


def test_a_run_that_went_on_since_it_was_opened_is_taken_up_as_it_is_now(on: Stage, writer: Writer) -> None:
    open_it(on)
    before = on.controller.run
    assert before is not None
    assert before.candidates[2].state == "stopped"
    writer.finish()
    on.controller.history._strip._on.click()  # nothing of it is missing any more
    run = on.controller.run
    assert run is not None
    assert [candidate.state for candidate in run.candidates.values()] == ["done", "done"]
    assert not on.controller.situation().busy
    assert on.controller.history.past is not None
    assert not on.controller.history._strip._on.isVisibleTo(on.window)
    on.controller.history._strip._again.click()
    assert on.window.prompt.text() == "Write a parser"
    assert on.controller.run is run  # it was up to date
    written(on).close()
    assert states(on) == ["done", "done"]


def test_a_run_that_another_process_writes_is_not_deleted(on: Stage, writer: Writer, qtbot: QtBot) -> None:
    panel = opened_panel(on, qtbot, 1)
    choose(panel, "Write a parser")
    panel._delete.click()
    assert on.window.notice.sentence == ELSEWHERE
    assert not panel._undo.isVisible()
    writer.finish()
    written(on).close()
    assert states(on) == ["done", "done"]
    panel._delete.click()
    assert panel._undo.isVisible()
    journal = written(on)
    assert journal.entries() == []
    journal.close()


def test_a_run_that_goes_on_here_is_not_deleted(on: Stage, qtbot: QtBot) -> None:
    on.generate(2)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
    written(on).close()
    panel = opened_panel(on, qtbot, 1)
    panel._view.setCurrentIndex(panel._model.index(0))
    panel._delete.click()
    assert on.window.notice.sentence == "This run is still going on; stop it first."
    assert not panel._undo.isVisible()
    on.finish()
    panel._delete.click()  # its end may not be on disk yet
    assert panel._undo.isVisible()
    journal = written(on)
    assert journal.entries() == []
    journal.close()


def test_other_runs_can_be_deleted_while_one_goes_on(on: Stage, qtbot: QtBot) -> None:
    recorder = Recorder(on.controller.history._file)
    recorder.begin(a_full_run("Roman numerals"))
    assert recorder.close()
    on.generate(2)
    on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
    written(on).close()
    panel = opened_panel(on, qtbot, 2)
    choose(panel, "Roman numerals")
    panel._delete.click()
    assert panel._undo.isVisible()
    on.finish()
    journal = written(on)
    assert [entry.candidates for entry in journal.entries()] == [2]
    journal.close()


def test_a_run_deleted_elsewhere_since_it_was_opened_is_not_taken_up(on: Stage) -> None:
    recorder = Recorder(on.controller.history._file)
    recorder.begin(a_full_run("Roman numerals"))
    assert recorder.close()
    open_it(on)
    journal = Journal(on.controller.history._file)
    journal.delete(1)
    journal.close()
    on.controller.history._strip._again.click()
    assert on.window.notice.sentence.startswith("There is no run 1 in the history")
    assert notice_buttons(on).keys() <= {"Copy report"}
    assert on.window.prompt.text() != "Roman numerals"


def taken_up_elsewhere(on: Stage) -> tuple[Journal, str]:
    """The run that ended here is being written by this test's parent process; and what it was before."""
    journal = written(on)
    parent = psutil.Process(os.getppid())
    (state,) = journal._db.execute("SELECT state FROM runs WHERE id = 1").fetchone()
    owner = f"{parent.pid} {parent.create_time():.0f}"
    journal._db.execute("UPDATE runs SET state = 'generating', owner = ? WHERE id = 1", (owner,))
    return journal, state


@pytest.mark.parametrize("action", ["generate_more", "fix_it"])
def test_a_run_that_ended_here_and_was_taken_up_elsewhere_does_not_go_on_here(on: Stage, action: str) -> None:
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    run = on.controller.run
    assert run is not None
    assert run.candidates[2].test_state == "failed"
    on.window.page.choose(2)
    journal, state = taken_up_elsewhere(on)
    on.do(action)
    on.settle()
    assert on.window.notice.sentence == ELSEWHERE
    assert not on.controller.situation().busy
    theirs = replace(run.candidates[2], number=3)
    journal.put(1, candidate_row(theirs))
    journal.update(1, {"state": state})
    on.do(action)
    on.settle()
    assert on.window.notice.sentence == ("This run has gone on elsewhere; open it from the history to go on with it.")
    assert len(run.candidates) == 2
    journal.drop(1, [3])
    journal.close()
    on.do(action)
    on.finish()
    assert len(run.candidates) > 2


def test_a_run_goes_on_without_a_history_that_can_be_read(on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(journal: Journal, id: int) -> bool:
        raise HistoryUnavailable("The history cannot be used.")

    on.generate(2)
    on.finish()
    written(on).close()
    monkeypatch.setattr(Journal, "is_open", broken)
    on.do("generate_more")
    on.finish()
    assert on.controller.run is not None
    assert len(on.controller.run.candidates) == 4
