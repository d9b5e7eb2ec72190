"""From a prompt to a saved file, on the scripted engine."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.question import QuestionDialog
from app.dialogs.report import ReportDialog
from engine.scripted import Script, ScriptedCandidate, from_texts
from engine.session.run import Run
from tests.app.stage import PROMPT, Stage

# Everything that a text widget would change.
AWKWARD = (
    "\ufeff\tdef f():\r\n\t    return '\u00a0\u2028\x1b[31m<T>&amp;\u200f'  \r\n  # no line end, e\u0301 \U0001f600"
)


def current(on: Stage) -> Run:
    assert on.controller.run is not None
    return on.controller.run


def answer_file_dialog(on: Stage, path: Path) -> None:
    dialog = on.window.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(path))
    dialog.reject()
    QApplication.processEvents()


def question(on: Stage) -> QuestionDialog:
    """The one that is asked now."""
    return next(found for found in on.window.findChildren(QuestionDialog) if found.isVisible())


def test_generate_streams_into_one_tab_per_candidate(on: Stage) -> None:
    on.generate(6)
    on.until(lambda: on.controller.run is not None and current(on).candidates[1].tokens >= 3)
    assert on.window.page.tabs.count() == 6
    assert current(on).request.prompt == PROMPT
    shown = on.window.page.code.toPlainText()
    assert shown
    assert current(on).candidates[1].text.startswith(shown)
    on.finish()
    assert on.window.page.code.toPlainText() == current(on).candidates[1].code.rstrip("\r")
    assert "6 of 6 finished" in on.window.status.text
    assert "drafts accepted 75 %" in on.window.status.text


def test_only_code_is_shown_while_it_streams(open_stage: Callable[..., Stage]) -> None:
    code = "def f():\n    return 1\n"
    on = open_stage(from_texts([f"Here it is:\n```python\n{code}```\nIt returns `1`.\n"], chunk=3))
    on.write()
    on.generate(2)
    seen, shown, whole = list[str](), on.window.page.code.toPlainText, ""
    while on.controller.run is None or not current(on).candidates[1].ended:
        on.steps(1)
        seen.append(shown())
        on.do("go_to_answer")
        whole = max(whole, on.window.page.answer.toPlainText(), key=len)
        on.do("go_to_code")
    begun = next(place for place, text in enumerate(seen) if "def" in text)
    assert all(code.startswith(text) for text in seen[begun:])
    assert not any("`" in text for text in seen)
    assert len({len(text) for text in seen[begun:]}) > 3  # it did stream
    assert "```python" in whole


def test_first_finished_candidate_is_usable_while_others_run(open_stage: Callable[..., Stage], tmp_path: Path) -> None:
    short, long = ScriptedCandidate(("```python\nx = 1\n```",)), ScriptedCandidate(tuple("y" * 200))
    on = open_stage(Script((long, short)))
    on.write(tests="assert x == 1")
    on.generate(2)
    on.until(lambda: on.controller.run is not None and current(on).candidates[2].ended)
    on.do("candidate_2")
    on.do("copy")
    assert QGuiApplication.clipboard().text() == "x = 1\n"
    on.do("save")
    answer_file_dialog(on, tmp_path / "x.py")
    assert (tmp_path / "x.py").read_bytes() == b"x = 1\n"
    on.do("run_tests")
    on.settle()
    assert current(on).candidates[2].report is not None
    assert current(on).candidates[1].state == "running"
    assert current(on).candidates[1].report is None


def test_tests_pick_and_f8_goes_there(on: Stage) -> None:
    on.generate(6)
    on.finish()
    on.do("run_tests")
    on.settle()
    passing = [number for number, candidate in current(on).candidates.items() if candidate.passed]
    assert passing == [1, 3, 4]
    assert "3 passed" in on.window.status.text
    seen = []
    for _ in range(4):
        on.do("next_passing")
        seen.append(on.window.page.number)
    assert seen == [3, 4, 1, 3]
    on.do("candidate_2")
    on.do("go_to_test_log")
    assert on.window.page.log.verdict == "Failed. 2 of 3 tests passed in 0.2 s."


def test_tests_run_as_candidates_finish(on: Stage) -> None:
    on.window.actions_by_id["test_as_finished"].setChecked(True)
    on.generate(6)
    on.until(lambda: on.controller.run is not None and any(c.report for c in current(on).candidates.values()))
    assert not current(on).ended
    on.finish()
    on.settle()
    assert all(candidate.report for candidate in current(on).candidates.values())


def test_changed_tests_void_the_verdicts(on: Stage) -> None:
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    assert on.runner is not None
    before = len(on.runner.heard)
    on.do("run_tests")
    on.settle()
    assert len(on.runner.heard) == before  # the same tests are not run twice
    on.window.tests.replace_text("assert roman_to_int('X') == 10")
    on.do("run_tests")
    on.settle()
    assert [test.tests for test in on.runner.heard[before:]] == ["assert roman_to_int('X') == 10"] * 2


def test_verdicts_on_other_tests_are_marked(on: Stage) -> None:
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    rows, tests = on.window.candidates, on.window.tests.text()
    on.window.tests.replace_text(tests + "assert roman_to_int('X') == 10\n")
    assert [rows.badge(row).note for row in range(2)] == ["tests changed"] * 2
    assert "the tests have changed since" in rows.index(0).data()
    on.do("go_to_test_log")
    assert on.window.page.log.verdict.endswith("The tests have changed since.")
    on.window.tests.replace_text(tests)
    assert "tests changed" not in [rows.badge(row).note for row in range(2)]
    assert "changed" not in on.window.page.log.verdict


@pytest.mark.parametrize("by_hand", [True, False])
def test_tests_that_do_not_parse_are_one_sentence_and_nobodys_error(on: Stage, by_hand: bool) -> None:
    said: list[str] = []
    on.window.notice.announced.connect(said.append)
    on.window.tests.replace_text("x = 1\nassert x ==\n")
    if not by_hand:
        on.do("test_as_finished")
    on.generate(3)
    on.finish()
    if by_hand:
        on.do("run_tests")
    assert [sentence[:39] for sentence in said] == ["Error: Your tests do not parse: line 2:"]
    assert {candidate.test_state for candidate in current(on).candidates.values()} == {"not run"}
    on.window.tests.replace_text("assert roman_to_int('X') == 10")
    on.do("run_tests")
    on.settle()
    assert all(candidate.report for candidate in current(on).candidates.values())


@pytest.mark.parametrize("text", [AWKWARD, f"Here:\r\n```python\r\n{AWKWARD}\r\n```\r\nDone.", "x = 1", ""])
def test_copy_save_and_test_give_the_bytes_of_the_code(
    open_stage: Callable[..., Stage], tmp_path: Path, text: str
) -> None:
    """What a text widget would change stays as the model wrote it."""
    on = open_stage(from_texts([text], chunk=3) if text else Script((ScriptedCandidate(("\n",)),)))
    on.write()
    on.generate(1)
    on.finish()
    code = current(on).candidates[1].code
    assert code == (text if not text.startswith("Here") else AWKWARD + "\r\n") or not text
    for action in ("go_to_answer", "go_to_code"):  # looking at it changes nothing
        on.do(action)
    on.do("copy")
    assert QGuiApplication.clipboard().text() == code
    on.do("save")
    answer_file_dialog(on, tmp_path / "saved.py")
    assert (tmp_path / "saved.py").read_bytes() == code.encode()
    on.do("run_tests")
    on.settle()
    if code.strip():
        assert on.runner is not None
        assert on.runner.heard[0].solution == code


def test_export_asks_before_it_replaces_an_earlier_run(on: Stage, tmp_path: Path) -> None:
    """The same name twice; the file of before stays until a person says so."""
    on.generate(2)
    on.finish()
    folder = tmp_path / "run"
    on.do("export")
    answer_file_dialog(on, folder)
    first = json.loads((folder / "result.json").read_bytes())
    assert [c["code"] for c in first["candidates"]] == [current(on).candidates[n].code for n in (1, 2)]
    (folder / "candidate-1.py").write_text("mine")
    on.do("export")
    answer_file_dialog(on, folder)
    assert "exists already" in on.window.notice.sentence
    assert (folder / "candidate-1.py").read_text() == "mine"
    replace = next(b for b in on.window.notice.findChildren(QPushButton) if b.text() == "Replace")
    replace.click()
    assert (folder / "candidate-1.py").read_bytes() == current(on).candidates[1].code.encode()


def test_saving_where_it_cannot_be_is_a_sentence(on: Stage, tmp_path: Path) -> None:
    """Where nothing can be written."""
    on.generate(1)
    on.finish()
    (tmp_path / "file").write_text("")
    on.do("save")
    answer_file_dialog(on, tmp_path / "file" / "x.py")
    assert on.window.notice.sentence.endswith("choose another place.")
    assert on.window.notice.isVisible()


def test_unsealed_tests_need_consent_once(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(sealed=False)
    on.write()
    on.generate(6)
    on.finish()
    on.do("run_tests")
    on.settle()
    question(on).no.click()
    on.settle()
    assert [c.test_state for c in current(on).candidates.values()] == ["not run"] * 6
    on.do("run_tests")
    on.settle()
    question(on).yes.click()
    on.settle()
    assert all(c.report for c in current(on).candidates.values())
    on.window.tests.replace_text("assert True")
    on.do("run_tests")
    on.settle()
    assert not any(found.isVisible() for found in on.window.findChildren(QuestionDialog))  # asked once, for this window
    assert all(c.report for c in current(on).candidates.values())


def test_an_example_fills_prompt_and_tests(open_stage: Callable[..., Stage]) -> None:
    on = open_stage()
    cards = [b for b in on.window.start_page.findChildren(QPushButton) if b.property("kind") == "card"]
    assert len(cards) == 4
    for card in cards[:3]:
        card.click()
        assert on.window.prompt.text().startswith("Write a Python")
        compile(on.window.tests.text(), "tests.py", "exec")
    cards[3].click()
    assert on.window.bar.model == "scripted"
    on.finish()
    assert len(current(on).candidates) == 8


def test_a_prompt_that_cannot_be_is_refused_with_a_sentence(open_stage: Callable[..., Stage]) -> None:
    on = open_stage()
    assert on.window.actions_by_id["generate"].toolTip() == "Type a prompt first."
    assert not on.window.actions_by_id["generate"].isEnabled()
    on.window.prompt.replace_text(" " * 2000)  # more than a glance tells
    on.do("generate")
    assert on.window.notice.sentence == "The prompt is empty; type what the code should do."
    assert on.controller.run is None


def test_a_failed_load_says_why_and_can_be_tried_again(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x"], load_failure="The file is incomplete: 77 of 491 MB."))
    on.write()
    on.generate(1)
    on.until(lambda: on.window.notice.isVisible())
    assert on.window.notice.sentence == "The file is incomplete: 77 of 491 MB."
    assert not on.window.loading.isVisible()
    assert on.window.actions_by_id["generate"].isEnabled()


def test_a_failed_run_keeps_what_was_finished(open_stage: Callable[..., Stage]) -> None:
    script = Script((ScriptedCandidate(("x = 1",)), ScriptedCandidate(("y",) * 9)), run_failure="Out of memory.")
    on = open_stage(script)
    on.write()
    on.generate(2)
    on.finish()
    assert on.window.notice.sentence == "Out of memory."
    assert [c.state for c in current(on).candidates.values()] == ["done", "failed"]
    assert current(on).candidates[1].code == "x = 1"
    assert on.window.actions_by_id["copy"].isEnabled()
    assert on.window.status.text.startswith("Failed   |   1 of 2 finished")


def test_an_engine_that_breaks_is_a_sentence_with_details(open_stage: Callable[..., Stage], qtbot: QtBot) -> None:
    on = open_stage()
    on.write()

    def broken(choice: object) -> None:
        raise RuntimeError("no such thing")

    on.controller.loading.open_engine = broken  # type: ignore[assignment]
    on.generate(1)
    on.until(lambda: on.window.notice.isVisible())
    assert "no such thing" in on.window.notice.sentence
    details = next(b for b in on.window.notice.findChildren(QPushButton) if b.text() == "Details")
    qtbot.mouseClick(details, Qt.MouseButton.LeftButton)
    report = on.window.findChild(ReportDialog)
    assert report is not None
    report.close()
    on.controller.loading.open_engine = on._open_engine  # the next load makes a new engine
    on.do("generate")
    on.finish()
    assert current(on).outcome == "finished"


def test_another_model_is_another_load(on: Stage) -> None:
    on.generate(1)
    on.finish()
    on.do("generate")
    on.finish()
    assert len(on.engines) == 1
    on.window.bar.choose_model("default")
    on.do("generate")
    on.finish()
    assert len(on.engines) == 2
