"""The history in the window: kept, found, opened to read, used again, deleted and brought back; and after a kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.item_models.history import HistoryModel, HistoryRole
from app.ui.theme import Theme
from app.widgets.history_panel import HistoryPanel
from engine.contract import CandidateFinished, Request, Turn
from engine.scripted import from_texts
from engine.session.journal import Journal
from engine.session.provenance import Provenance
from engine.session.recorder import Recorder
from engine.session.run import Run
from tests.app.stage import Stage, stage
from tests.engine.session.runs import a_full_run

ROOT = Path(__file__).resolve().parents[2]


def written(on: Stage) -> Journal:
    """The history once everything handed over is on disk; to be closed."""
    assert on.controller.history._recorder.flush()
    QApplication.processEvents()
    return Journal(on.controller.history._file)


def opened_panel(on: Stage, qtbot: QtBot, rows: int) -> HistoryPanel:
    panel = on.controller.history.panel
    if not panel.isVisible():
        on.do("history")
    qtbot.waitUntil(lambda: panel._model.rowCount() == rows)
    return panel


def choose(panel: HistoryPanel, title: str) -> None:
    rows = range(panel._model.rowCount())
    panel._view.setCurrentIndex(next(i for row in rows if (i := panel._model.index(row)).data() == title))


@pytest.fixture
def on_past(open_stage: Callable[..., Stage]) -> Stage:
    """A window that has two runs in its history."""
    on = open_stage()
    recorder = Recorder(on.controller.history._file)
    for prompt in ("Write f.\nIn Python.", "Roman numerals"):
        recorder.begin(a_full_run(prompt))
    assert recorder.close()
    on.write()
    return on


def notice_buttons(on: Stage) -> dict[str, QPushButton]:
    return {b.text(): b for b in on.window.notice.findChildren(QPushButton) if b.isVisibleTo(on.window)}


class TestKept:
    def test_a_run_with_its_verdicts(self, on: Stage) -> None:
        on.generate(3)
        on.finish()
        on.do("run_tests")
        on.settle()
        run = on.controller.run
        journal = written(on)
        (entry,) = journal.entries()
        back = journal.load(entry.id)
        journal.close()
        assert run is not None
        assert back.run.candidates == run.candidates
        assert (back.run.request, back.run.tests, back.run.metrics) == (run.request, run.tests, run.metrics)
        assert back.run.provenance == Provenance(on.controller.loading.loaded, on.controller.ready)
        assert entry.passed == sum(c.passed for c in run.candidates.values()) > 0

    def test_generate_more_stays_one_run(self, on: Stage) -> None:
        on.generate(2)
        on.finish()
        on.do("generate_more")
        on.finish()
        journal = written(on)
        assert [entry.candidates for entry in journal.entries()] == [4]
        journal.close()

    def test_old_candidates_stay_when_more_fail(self, open_stage: Callable[..., Stage]) -> None:
        """The engine breaks down while it generates more."""
        on = open_stage(from_texts(["```\nx = 1\n```", "```\nx = 2\n```"], chunk=4))
        on.write()
        on.generate(2)
        on.finish()
        engine = on.engines[-1]
        engine.script = from_texts(["```\nx = 3\n```"] * 4, chunk=4, run_failure="Out of memory.")
        on.do("generate_more")
        on.finish()
        run = on.controller.run
        assert run is not None
        assert run.state == "failed"
        assert [run.candidates[n].code for n in (1, 2)] == ["x = 1\n", "x = 2\n"]
        journal = written(on)
        (entry,) = journal.entries()
        assert journal.load(entry.id).run.candidates[2].code == "x = 2\n"
        journal.close()

    def test_nothing_when_the_settings_say_so(self, on: Stage) -> None:
        on.controller.history.keeping = False
        on.generate(2)
        on.finish()
        journal = written(on)
        assert journal.entries() == []
        journal.close()


class TestPanel:
    def test_search_and_open_to_read(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        prompt = on.window.prompt.text()
        panel._search.setText("ROMAN")
        qtbot.waitUntil(lambda: panel._model.rowCount() == 1)
        panel._search.setText("no such thing")
        qtbot.waitUntil(lambda: panel._model.rowCount() == 0)
        assert panel._empty.text() == "No run contains “no such thing”."
        panel._search.clear()
        qtbot.waitUntil(lambda: panel._model.rowCount() == 2)
        choose(panel, "Write f.")
        panel._open.click()
        run = on.controller.run
        assert run is not None
        assert (run.request.prompt, len(run.candidates)) == ("Write f.\nIn Python.", 3)
        assert on.window.prompt.text() == prompt  # what was being typed stays
        for action in ("run_tests", "generate_more"):
            assert not on.window.actions_by_id[action].isEnabled()
            assert "choose Use again first" in on.window.actions_by_id[action].toolTip()
        assert on.window.actions_by_id["save"].isEnabled()
        assert on.window.actions_by_id["generate"].isEnabled()
        assert "Write f" in on.controller.history._strip._words.text()

    def test_use_again_and_go_on(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        choose(panel, "Write f.")
        panel._view.setFocus()
        qtbot.keyClick(panel._view, Qt.Key.Key_Return)
        on.controller.history._strip._again.click()
        run = on.controller.run
        assert run is not None
        assert on.window.prompt.text() == "Write f.\nIn Python."
        assert on.window.tests.text() == run.tests.replace("\r\n", "\n")
        assert on.window.bar.settings().candidates == 3
        assert not on.controller.history._strip.isVisible()
        on.window.bar.choose_model("scripted")
        on.do("generate_more")
        on.finish()
        on.do("run_tests")
        on.settle()
        journal = written(on)
        assert [(entry.title, entry.candidates) for entry in journal.entries()] == [
            ("Roman numerals", 3),
            ("Write f.", 6),
        ]
        journal.close()
        on.window.prompt.undo()
        assert "roman_to_int" in on.window.prompt.text()

    def test_use_again_brings_the_conversation_along(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        choose(panel, "Write f.")  # which followed an earlier turn
        panel._open.click()
        on.controller.history._strip._again.click()
        assert on.controller.asking.request(on.window.bar.settings()).turns == (Turn("user", "before"),)
        choose(panel, "Roman numerals")
        panel._open.click()
        on.controller.history._strip._again.click()
        assert on.controller.asking.request(on.window.bar.settings()).turns == ()

    def test_a_new_run_leaves_the_past(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        choose(panel, "Write f.")
        panel._open.click()
        on.generate(2)
        on.finish()
        assert on.controller.history.past is None
        assert not on.controller.history._strip.isVisible()
        qtbot.waitUntil(lambda: panel._model.rowCount() == 3)
        journal = written(on)
        assert [entry.candidates for entry in journal.entries()] == [2, 3, 3]
        journal.close()

    def test_with_keys_only(self, on_past: Stage, qtbot: QtBot) -> None:
        on, window = on_past, on_past.window
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        qtbot.keyClick(window, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
        panel = on.controller.history.panel
        assert panel._search.hasFocus()
        qtbot.keyClicks(panel._search, "roman")
        qtbot.waitUntil(lambda: panel._model.rowCount() == 1)
        qtbot.keyClick(panel._search, Qt.Key.Key_Return)
        qtbot.keyClick(panel._view, Qt.Key.Key_Home)
        qtbot.keyClick(panel._view, Qt.Key.Key_Return)
        assert on.controller.run is not None
        assert on.controller.run.request.prompt == "Roman numerals"
        qtbot.keyClick(window, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
        assert not panel.isVisible()

    def test_open_or_closed_is_remembered(self, theme: Theme, tmp_path: Path) -> None:
        for action_before, shown in ((False, True), (True, False)):
            with stage(theme, tmp_path) as on:
                on.window.show()
                assert on.controller.history.panel.isVisible() == action_before
                assert on.window.prompt.hasFocus() or not on.window.isActiveWindow()
                on.do("history")
                assert on.controller.history.panel.isVisible() == shown

    def test_nothing_opens_while_something_runs(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        on.generate(2)
        on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
        choose(panel, "Write f.")
        assert not panel._open.isEnabled()
        assert panel._open.toolTip() == "Something is running; stop it first."
        run = on.controller.run
        panel._view.activated.emit(panel._view.currentIndex())
        assert on.controller.run is run
        on.finish()
        assert panel._open.isEnabled()

    def test_delete_and_undo(self, on_past: Stage, qtbot: QtBot) -> None:
        on, panel = on_past, opened_panel(on_past, qtbot, 2)
        choose(panel, "Write f.")
        panel._view.setFocus()
        qtbot.keyClick(panel._view, Qt.Key.Key_Delete)
        qtbot.waitUntil(lambda: panel._model.rowCount() == 1)
        assert panel._undone.text() == "Deleted “Write f.”"
        panel._undo.click()
        qtbot.waitUntil(lambda: panel._model.rowCount() == 2)
        assert not panel._undo.isVisible()
        choose(panel, "Write f.")
        panel._delete.click()
        panel._undo_time.timeout.emit()  # thirty seconds later
        assert not panel._undo.isVisible()
        journal = written(on)
        assert [entry.title for entry in journal.entries()] == ["Roman numerals"]
        journal.close()

    def test_two_thousand_runs_do_not_stop_the_window(self, on: Stage, qtbot: QtBot) -> None:
        recorder = Recorder(on.controller.history._file)
        for number in range(2000):
            recorder.begin(a_full_run(f"Write number {number} of many prompts, none like another"))
        recorder.close()
        history, took = on.controller.history, []
        for search in ("", "number 1999", "return 2", "zzz", "e"):
            start = os.times().user
            history._list(search)
            took.append(os.times().user - start)
        assert history.panel._model.rowCount() == 200
        assert max(took) < 0.5, took  # seconds of computing; 0.025 where it was measured


class TestRecovered:
    @pytest.fixture
    def crashed(self, on: Stage) -> Stage:
        run = Run("x", Request("Write a parser", 1, 4))
        recorder = Recorder(on.controller.history._file)
        recorder.begin(run)
        run.apply(CandidateFinished("x", 2, "done", "stop", "```\nx = 2\n```", 9, 0, 0, -1.0, 1.0))
        recorder.note(run)
        recorder.close()
        journal = Journal(on.controller.history._file)
        journal._db.execute("UPDATE runs SET owner = '1 0'")
        journal.close()
        on.controller.history.recover()
        written(on).close()
        return on

    def test_show(self, crashed: Stage) -> None:
        assert crashed.window.notice.sentence == (
            "Bassline closed unexpectedly: 1 of 4 candidates of “Write a parser” had finished and were kept."
        )
        notice_buttons(crashed)["Show"].click()
        run = crashed.controller.run
        assert run is not None
        assert {n: c.state for n, c in run.candidates.items()} == {1: "stopped", 2: "done", 3: "stopped", 4: "stopped"}
        assert run.candidates[2].code == "x = 2\n"
        assert crashed.controller.history.past is not None

    def test_discard(self, crashed: Stage) -> None:
        notice_buttons(crashed)["Discard"].click()
        journal = written(crashed)
        assert journal.entries() == []
        journal.close()

    def test_asked_only_once(self, crashed: Stage) -> None:
        crashed.window.notice.hide()
        crashed.controller.history.recover()
        written(crashed).close()
        assert not crashed.window.notice.isVisible()

    def test_closing_is_no_crash(self, theme: Theme, tmp_path: Path) -> None:
        with stage(theme, tmp_path) as on:
            on.write()
            on.generate(3)
            on.until(lambda: on.controller.run is not None and on.controller.run.state == "generating")
        with stage(theme, tmp_path) as on:
            on.controller.history.recover()
            journal = written(on)
            (entry,) = journal.entries()
            run = journal.load(entry.id).run
            journal.close()
            assert not on.window.notice.isVisible()
            assert (run.state, run.outcome) == ("stopped", "stopped")
            assert {candidate.state for candidate in run.candidates.values()} == {"stopped"}
            assert run.candidates[1].text

    def test_nothing_is_said_after_a_good_end(self, on: Stage) -> None:
        on.generate(2)
        on.finish()
        on.controller.history.recover()
        written(on).close()
        assert not on.window.notice.isVisible()


WINDOW = """
import sys
import app.window.start
from PySide6.QtCore import QTimer
from dataclasses import replace

build = app.window.start.build

def and_generate(*args):
    controller = build(*args)

    def begin():
        controller.offer_demo()
        controller.window.bar.apply(replace(controller.window.bar.settings(), candidates=16))
        controller.generate()

    shown = []

    def tell():
        if controller.run is not None:
            for number, candidate in controller.run.candidates.items():
                if candidate.ended and number not in shown:
                    shown.append(number)
                    # what has been in view for a moment, long enough to be read
                    QTimer.singleShot(100, lambda number=number: print(number, flush=True))

    controller.loading.drained.connect(tell)
    QTimer.singleShot(0, begin)
    return controller

app.window.start.build = and_generate
sys.exit(app.window.start.main([]))
"""


def test_kill_9_of_the_window_loses_no_finished_candidate(tmp_path: Path) -> None:
    """The whole program at n = 16, killed while it writes; the next start has every finished candidate."""
    env = os.environ | {"BASSLINE_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    with subprocess.Popen(
        [sys.executable, "-c", WINDOW], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(8)]
        child.send_signal(signal.SIGKILL)
        told += [int(line) for line in child.stdout.read().split()]
    journal = Journal(tmp_path / "data" / "history.sqlite")
    (left,) = journal.end_unfinished()
    run = journal.load(left.id).run
    journal.close()
    assert len(run.candidates) == 16
    assert all(run.candidates[number].state == "done" for number in told)
    assert all("def roman_to_int" in run.candidates[number].text for number in told)


def test_history_model_keeps_the_rules(qtmodeltester: ModelTester, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "h.sqlite")
    for prompt in ("a", "b"):
        recorder.begin(a_full_run(prompt))
    recorder.close()
    journal, model = Journal(tmp_path / "h.sqlite"), HistoryModel()
    qtmodeltester.check(model)
    entries = journal.entries()
    journal.close()
    model.show(entries)
    qtmodeltester.check(model)
    assert [model.index(row).data() for row in range(2)] == ["b", "a"]
    assert model.index(0).data(HistoryRole.NOTE).endswith(", 1 of 3 pass")
    assert model.index(0).data(Qt.ItemDataRole.AccessibleTextRole).startswith("b, ")
    assert model.row_of(entries[1].id) == 1
    model.show(entries[1:])
    qtmodeltester.check(model)
    assert (model.rowCount(), model.row_of(entries[0].id)) == (1, -1)
