"""The model manager: what there is, fetching with pause, removing with what it frees, and drafts with reasons."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.models import ModelsDialog
from app.dialogs.question import QuestionDialog
from app.item_models.model_rows import about, row
from engine.contract import LoadCancelled, LoadFailed, Loading
from engine.models import library, preparation
from engine.models.errors import DiskFull
from engine.models.library import ListedModel
from engine.models.preparation import PreparedModel
from tests.app.stage import Stage
from tests.app.test_window import nameless

SMALL = ListedModel(
    "smollm2-135m", "SmolLM2", "Catalog", 134_515_008, 8192, "Apache-2.0", "", 98_362_432, 0, 0, False, False, False,
    True, "fits",
)  # fmt: skip
HERE = ListedModel(
    "qwen2.5-coder-0.5b", "Qwen 0.5B", "Catalog", 494_032_768, 32768, "Apache-2.0", "", 0, 491_400_064, 700_000_000,
    True, True, True, True, "fits",
)  # fmt: skip
BIG = ListedModel(
    "qwen2.5-coder-7b", "Qwen 7B", "Catalog", 7_615_616_512, 32768, "Apache-2.0", "qwen2.5-coder-0.5b", 15_231_233_024,
    0, 0, False, False, False, False, "does not fit (9.1 of 4.0 GB free)",
)  # fmt: skip
FOUND = ListedModel(
    "ollama/x:1b", "ollama/x:1b", "Ollama", 10**9, 4096, "", "", 0, 7, 0, True, False, False, True, "fits"
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[ListedModel]:
    """What is listed; tests change it."""
    models = [SMALL, HERE, BIG, FOUND]
    monkeypatch.setattr(library, "listed", lambda: list(models))
    return models


@pytest.fixture
def dialog(on: Stage, machine: list[ListedModel], qtbot: QtBot) -> Iterator[ModelsDialog]:
    on.window.bar.choose_model("qwen2.5-coder-7b")
    on.do("models")
    shown = on.controller.models._dialog
    assert shown is not None
    qtbot.waitUntil(lambda: shown._rows.rowCount() == 4)
    yield shown
    on.controller.models.close()


def choose(dialog: ModelsDialog, model: ListedModel) -> None:
    dialog._table.selectRow([listed.name for listed in dialog._models].index(model.name))


def test_what_there_is(dialog: ModelsDialog) -> None:
    assert nameless(dialog) == []
    texts = [[dialog._rows.index(place, column).data() for column in range(4)] for place in range(4)]
    assert texts == [
        ["SmolLM2", "0.13 B", "to download: 98 MB", "fits"],
        ["Qwen 0.5B (default here)", "0.49 B", "1.2 GB, ready", "fits"],
        ["Qwen 7B", "7.62 B", "to download: 15.2 GB", "does not fit (9.1 of 4.0 GB free)"],
        ["ollama/x:1b", "1.00 B", "0 MB, ready", "fits"],
    ]
    assert row(HERE, loaded=True)[2].text == "loaded now"
    assert about(HERE) == "Apache-2.0, context of 32,768 tokens, 491 MB as published and 700 MB as loaded"
    assert "drafts well with qwen2.5-coder-0.5b" in about(BIG)


def test_what_can_be_done_with_each(dialog: ModelsDialog) -> None:
    choose(dialog, SMALL)
    assert dialog._fetch.isEnabled()
    assert not dialog._draft.isEnabled()
    assert dialog._draft.toolTip().startswith("Another family: its vocabulary has 49,152 tokens")
    assert "Not as a draft: Another family" in dialog._about.text()
    assert dialog._remove.toolTip() == "There are no files of it to remove."
    choose(dialog, HERE)
    assert (dialog._fetch.isEnabled(), dialog._draft.isEnabled(), dialog._remove.isEnabled()) == (False, True, True)
    assert dialog._fetch.toolTip() == "It is on this computer already."
    dialog._other.setText("owner/name")
    assert (dialog._fetch.isEnabled(), dialog._use.isEnabled(), dialog._remove.isEnabled()) == (True, True, False)


def test_use_and_use_as_draft(dialog: ModelsDialog, on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on.controller.loading, "load", lambda choice, quiet=False: None)
    dialog._other.setText("owner/name")
    dialog._use.click()
    assert on.window.bar.model == "owner/name"
    dialog._other.clear()
    choose(dialog, BIG)
    dialog._use.click()
    choose(dialog, HERE)
    dialog._draft.click()
    choice = on.window.bar.settings().choice
    assert (choice.model, choice.draft) == ("qwen2.5-coder-7b", "qwen2.5-coder-0.5b")


def test_drafts_that_cannot_are_greyed_with_the_reason(dialog: ModelsDialog, on: Stage) -> None:
    """A draft that does not fit its target."""
    rows = on.window.bar.advanced._draft.model()
    assert isinstance(rows, QStandardItemModel)
    items = [rows.item(place) for place in range(rows.rowCount())]
    assert [(item.text(), item.isEnabled()) for item in items] == [
        ("none", True),
        ("SmolLM2", False),
        ("Qwen 0.5B", True),
        ("Qwen 7B", False),
        ("ollama/x:1b", True),
    ]
    assert items[1].toolTip().startswith("Another family")


def test_found_models_join_the_model_box(
    dialog: ModelsDialog, on: Stage, machine: list[ListedModel], qtbot: QtBot
) -> None:
    box = on.window.bar._model
    assert box.findData(FOUND.name) == box.count() - 2
    assert box.itemData(box.count() - 1) == "scripted"
    machine.remove(FOUND)
    on.controller.models.look()
    qtbot.waitUntil(lambda: box.findData(FOUND.name) < 0)
    assert on.window.bar.model == "qwen2.5-coder-7b"


class Download:
    """Stands still at each step until it is let go."""

    def __init__(self) -> None:
        self.go, self.calls, self.done = threading.Event(), 0, 0

    def __call__(
        self, name: str, *, progress: Callable[[Loading], None], cancelled: Callable[[], bool]
    ) -> PreparedModel:
        self.calls += 1
        while self.done < 4:
            progress(Loading("download", self.done * 25, 100))
            while not self.go.wait(0.005):
                if cancelled():
                    raise LoadCancelled("Loading was stopped.")
            self.go.clear()
            self.done += 1
        return PreparedModel(name, Path(), "cpu", "int8")


@pytest.fixture
def download(monkeypatch: pytest.MonkeyPatch) -> Download:
    result = Download()
    monkeypatch.setattr(preparation, "prepare", result)
    monkeypatch.setattr("app.controllers.model_library._TELL_S", 0.0)
    return result


def test_fetch_pause_and_go_on(
    dialog: ModelsDialog, on: Stage, machine: list[ListedModel], download: Download, qtbot: QtBot
) -> None:
    choose(dialog, SMALL)
    dialog._fetch.click()
    qtbot.waitUntil(lambda: "smollm2-135m: downloading" in dialog._message.text())
    assert not dialog._fetch.isEnabled()
    download.go.set()
    qtbot.waitUntil(lambda: dialog._bar.value() == 250)
    dialog._pause.click()
    qtbot.waitUntil(lambda: "is paused; Download goes on where it stopped" in dialog._message.text())
    assert not dialog._bar.isVisible()
    assert not dialog._pause.isEnabled()
    dialog._fetch.click()
    qtbot.waitUntil(lambda: download.calls == 2)
    while download.done < 4:
        download.go.set()
        QApplication.processEvents()
    qtbot.waitUntil(lambda: "smollm2-135m is ready to load." in dialog._message.text())
    assert not dialog._bar.isVisible()


def test_a_download_goes_on_without_the_dialog(
    dialog: ModelsDialog, on: Stage, download: Download, qtbot: QtBot
) -> None:
    choose(dialog, SMALL)
    dialog._fetch.click()
    dialog.accept()
    assert on.controller.models._dialog is None
    while download.done < 4:
        download.go.set()
        QApplication.processEvents()
    qtbot.waitUntil(lambda: not on.controller.models._fetching)
    assert "smollm2-135m is ready to load." in on.window.status.model_text


def test_what_goes_wrong_is_a_sentence(dialog: ModelsDialog, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    def full(name: str, **options: object) -> None:
        raise DiskFull("The disk is full; it goes on from here once there is room.")

    monkeypatch.setattr(preparation, "prepare", full)
    choose(dialog, SMALL)
    dialog._fetch.click()
    qtbot.waitUntil(lambda: dialog._message.text().startswith("The disk is full;"))
    assert dialog._fetch.isEnabled()


def test_remove_asks_and_says_what_it_freed(
    dialog: ModelsDialog, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    removed: list[str] = []

    def remove(name: str) -> int:
        removed.append(name)
        return 1_191_400_064

    monkeypatch.setattr(library, "remove", remove)
    choose(dialog, HERE)
    dialog._remove.click()
    asked = dialog.findChild(QuestionDialog)
    assert asked is not None
    asked.no.click()
    assert removed == []
    dialog._remove.click()
    dialog.findChildren(QuestionDialog)[-1].yes.click()
    qtbot.waitUntil(lambda: dialog._message.text() == "Qwen 0.5B is removed; 1.2 GB are free again.")
    assert removed == ["qwen2.5-coder-0.5b"]


def test_a_model_that_does_not_fit_can_be_insisted_on(on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    ways_out, bar = on.controller.ways_out, on.window.bar
    monkeypatch.setattr(ways_out, "_generate", lambda: asked.append(bar.settings().choice.ignore_fit))
    bar.choose_model("qwen2.5-coder-7b")
    ways_out.say(LoadFailed("It needs 9.1 GB, and 4.0 GB are free.", kind="out-of-memory"))
    buttons = {button.text(): button for button in on.window.notice.findChildren(QPushButton)}
    buttons["Load anyway"].click()
    assert asked == [True]
    bar.choose_model("smollm2-135m")  # it was said of the other one
    assert not bar.settings().choice.ignore_fit
