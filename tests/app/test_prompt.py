"""What goes to the model beside the prompt: files, earlier answers, and what a test has found."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog

from app.widgets.context_strip import Chip
from engine.contract import Turn
from engine.session.search import Decision
from tests.app.stage import PROMPT, Stage


def chips(on: Stage) -> list[Chip]:
    return [chip for chip in on.window.context.findChildren(Chip) if chip.isVisible()]


def drop(on: Stage, *paths: Path) -> None:
    """As a file manager would let go of them over the window."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    here, copy = QPointF(40, 300), Qt.DropAction.CopyAction
    button, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(here.toPoint(), copy, data, button, none)
    QApplication.sendEvent(on.window, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(on.window, QDropEvent(here, copy, data, button, none))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "stack.py"
    path.write_text("class Stack:\n    pass\n")
    return path


def test_a_dropped_file_goes_along_and_can_be_taken_away(on: Stage, file: Path) -> None:
    drop(on, file)
    assert [chip.text() for chip in chips(on)] == ["stack.py, 22 bytes   ×"]
    on.generate(1)
    on.finish()
    assert on.controller.run is not None
    sent = on.controller.run.request.prompt
    assert sent.startswith("File stack.py:\n\n```python\nclass Stack:")
    assert sent.endswith(PROMPT)
    assert on.window.prompt.text() == PROMPT
    chips(on)[0].click()
    assert chips(on) == []
    on.do("generate")
    on.finish()
    assert on.controller.run.request.prompt == PROMPT


def test_files_can_be_chosen_by_keys(on: Stage, file: Path) -> None:
    on.do("attach")
    dialog = on.window.findChild(QFileDialog)
    assert dialog is not None
    dialog.filesSelected.emit([str(file)])
    dialog.reject()
    assert [attached.name for attached in on.controller.asking.files] == ["stack.py"]


def test_what_cannot_be_context_is_a_sentence(on: Stage, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    drop(on, tmp_path / "picture.png")
    assert on.window.notice.sentence == "picture.png is not text in UTF-8; attach source files only."
    assert chips(on) == []


def test_a_dropped_model_is_chosen_as_the_model(on: Stage, tmp_path: Path) -> None:
    model = tmp_path / "tiny.gguf"
    model.write_bytes(b"GGUF")
    drop(on, model)
    assert on.window.bar.model == str(model)
    on.controller.loading.cancel()


def test_text_that_is_dragged_belongs_to_the_editor(on: Stage, file: Path) -> None:
    here, copy = QPointF(10, 10), Qt.DropAction.CopyAction
    for data, accepted in ((QMimeData(), True), (QMimeData(), False)):
        if accepted:
            data.setText("words")
        else:
            data.setUrls([QUrl.fromLocalFile(str(file))])
        event = QDragEnterEvent(here.toPoint(), copy, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
        on.window.prompt.dragEnterEvent(event)
        assert event.isAccepted() == accepted


def test_a_follow_up_goes_on_from_the_candidate_in_view(on: Stage) -> None:
    on.generate(2)
    on.finish()
    first = on.controller.run
    assert first is not None
    on.window.page.choose(2)
    on.do("follow_up")
    assert [chip.text() for chip in chips(on)] == ["Follows candidate 2   ×"]
    assert on.window.prompt.textCursor().selectedText() == PROMPT
    on.window.prompt.replace_text("Shorter, please.")
    on.do("generate")
    on.finish()
    second = on.controller.run
    assert second is not first
    assert second is not None
    assert second.request.prompt == "Shorter, please."
    assert second.request.turns == (Turn("user", PROMPT), Turn("assistant", first.candidates[2].text))
    chips(on)[0].click()
    on.do("generate")
    on.finish()
    assert on.controller.run is not None
    assert on.controller.run.request.turns == ()


def test_fix_it_hands_back_the_code_and_the_failing_test_and_keeps_the_candidates(on: Stage) -> None:
    on.generate(2)
    on.finish()
    assert on.window.actions_by_id["fix_it"].toolTip() == "This candidate has not failed a test."
    on.do("run_tests")
    on.settle()
    on.window.page.choose(2)
    on.settle()
    run = on.controller.run
    assert run is not None
    failing = run.candidates[2]
    on.do("fix_it")
    on.finish()
    assert on.controller.run is run
    assert sorted(run.candidates) == [1, 2, 3, 4]
    asked = Decision.from_dict(run.decisions[-1]).request
    assert 'assert roman_to_int("MCMXCIV") == 1994, where it returned 2216' in asked.prompt
    assert failing.code.strip() in asked.turns[-1].text
    assert [run.candidates[n].origin.of for n in (1, 2, 3, 4)] == [0, 0, 2, 2]
    assert on.window.prompt.text() == PROMPT
    on.do("run_tests")
    on.settle()
    assert any(run.candidates[n].passed for n in (3, 4))


def test_a_repair_says_whose_it_is_and_is_set_against_it(on: Stage) -> None:
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    on.window.page.choose(2)
    on.do("fix_it")
    on.finish()
    on.window.page.choose(4)
    on.do("compare")
    assert on.window.page.compare.other == 2
    on.window.page.compare.compare_with(1)
    on.settle()
    assert on.window.page.compare.other == 1  # another choice stays
    on.do("go_to_details")
    shown = on.window.page._details
    rows = {shown.index(row, 0).data(): shown.index(row, 1).data() for row in range(shown.rowCount())}
    assert rows["Origin"] == "repair of 2"
    assert rows["Prompt"].startswith("The code above fails this test:")


def test_length_is_in_tokens_where_the_engine_has_counted(on: Stage) -> None:
    assert on.window.context.length == f"{len(PROMPT)} characters"
    on.generate(1)
    on.finish()
    assert on.window.context.length == f"{len(PROMPT.split())} of 8,192 tokens"
    on.window.prompt.replace_text("other")
    assert on.window.context.length == "5 characters"
