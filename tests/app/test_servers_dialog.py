"""The servers dialog: kept, changed, forgotten, tested and used; the token never shows."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.dialogs.servers import ServersDialog
from app.system.tasks import Task
from engine.contract import BasslineError
from engine.server.dialect import LARGEST
from engine.server.probe import ServerProbe
from engine.session import servers
from engine.session.servers import Server
from tests.app.stage import Stage
from tests.app.test_window import nameless


@pytest.fixture
def dialog(on: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServersDialog]:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
    servers.add(Server("here", "http://localhost:11434"))
    servers.add(Server("lab", "https://gpu.example:8000", "large"))
    on.do("servers")
    shown = on.controller.servers._dialog
    assert shown is not None
    yield shown
    on.controller.servers.close()


def names(dialog: ServersDialog) -> list[str]:
    return [dialog._list.item(row).text() for row in range(dialog._list.count())]


def test_add_change_and_forget(dialog: ServersDialog) -> None:
    assert names(dialog) == ["here", "lab"]
    dialog._buttons["new"].click()
    dialog._name.setText("second")
    dialog._address.setText("localhost:8000")
    dialog._buttons["save"].click()
    assert names(dialog) == ["here", "lab", "second"]
    assert dialog._address.text() == "http://localhost:8000/v1"
    dialog._model.setEditText("small")
    dialog._buttons["save"].click()
    assert servers.find("second").model == "small"
    dialog._buttons["remove"].click()
    assert names(dialog) == ["here", "lab"]
    assert dialog._found.text() == "second is removed."


def test_what_cannot_be_is_said(dialog: ServersDialog) -> None:
    dialog._buttons["new"].click()
    dialog._name.setText("x y")
    dialog._address.setText("http://localhost:1")
    dialog._buttons["save"].click()
    assert "A server's name is made of" in dialog._found.text()
    dialog._name.setText("")
    dialog._buttons["save"].click()
    assert "needs a name" in dialog._found.text()
    dialog._address.setText("ftp://x")
    dialog._buttons["test"].click()
    assert "no address of a server" in dialog._found.text()
    assert names(dialog) == ["here", "lab"]


def test_a_test_runs_beside_the_window(
    dialog: ServersDialog, on: Stage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    found = ServerProbe(("large", "small"), "large", 0.012, 0.31, False, True, 32768, LARGEST)

    def probe(server: Server, model: str = "", token: object = None) -> ServerProbe:
        asked.append((server.name, token, threading.current_thread() is threading.main_thread()))
        return found

    monkeypatch.setattr("engine.server.probe.probe", probe)
    dialog._list.setCurrentRow(1)
    dialog._buttons["test"].click()
    assert not dialog._buttons["test"].isEnabled()
    qtbot.waitUntil(lambda: "large answers; delay 12 ms, first token after 0.3 s." in dialog._found.text())
    assert "ignores the seed" in dialog._found.text()
    assert asked == [("lab", None, False)]
    assert [dialog._model.itemText(row) for row in range(3)] == ["default", "large", "small"]
    assert dialog._model.currentText() == "large"


def test_a_server_that_does_not_answer(dialog: ServersDialog, qtbot: QtBot) -> None:
    dialog._list.setCurrentRow(0)
    dialog._address.setText("http://127.0.0.1:9")  # discard: nobody listens
    dialog._buttons["test"].click()
    qtbot.waitUntil(lambda: dialog._buttons["test"].isEnabled(), timeout=20_000)
    assert "127.0.0.1:9" in dialog._found.text()


def test_the_model_is_chosen(dialog: ServersDialog, on: Stage) -> None:
    dialog._list.setCurrentRow(1)
    dialog._buttons["use"].click()
    choice = on.window.bar.settings().choice
    assert (choice.server, choice.model) == ("https://gpu.example:8000/v1", "large")
    assert on.controller.servers._dialog is None


def test_names_and_a_hidden_token(dialog: ServersDialog) -> None:
    assert nameless(dialog) == []
    assert dialog._token.echoMode() == QLineEdit.EchoMode.Password


def test_a_task_brings_back_its_result_or_a_sentence(qtbot: QtBot) -> None:
    task = Task()
    with qtbot.waitSignal(task.done) as done:
        task.run(lambda: threading.current_thread().name)
    assert done.args == ["task"]

    def fail() -> None:
        raise BasslineError("No such thing; try another.")

    with qtbot.waitSignal(task.failed) as failed:
        task.run(fail)
    assert failed.args == ["No such thing; try another."]
    with qtbot.waitSignal(task.failed) as failed:
        task.run(lambda: 1 / 0)
    assert "division by zero" in failed.args[0]
    with qtbot.assertNotEmitted(task.done, wait=100):
        task.run(lambda: 1)
        task.forget()
    assert not task.busy
