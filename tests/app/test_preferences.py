"""Settings at work: applied at once, kept when the dialog closes, robust against what stands in the file."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.dialogs.settings import SettingsDialog
from app.ui.theme import Theme
from engine.contract import Sampling
from engine.session.settings import Settings, keep, load
from tests.app.stage import Stage
from tests.app.test_window import nameless


@pytest.fixture(autouse=True)
def as_before(theme: Theme, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "")
    yield
    theme.force("")
    theme.use_font_size(0)


@pytest.fixture
def dialog(on: Stage) -> SettingsDialog:
    on.do("settings")
    shown = on.controller.preferences._dialog
    assert shown is not None
    return shown


def file_of(on: Stage) -> Path:
    return on.controller.preferences._file


def test_theme_and_font_show_at_once_and_are_kept(on: Stage, dialog: SettingsDialog, theme: Theme) -> None:
    font, code = QApplication.font().pointSizeF(), on.window.page.code.font().pointSizeF()
    dialog._theme.setCurrentIndex(dialog._theme.findData("dark"))
    assert theme.colours.dark
    dialog._font.setText("14")
    assert QApplication.font().pointSizeF() == 14
    for editor in (on.window.prompt, on.window.tests, on.window.page.code):
        assert editor.font().pointSizeF() == 14
    assert not file_of(on).exists()
    dialog.accept()
    assert load(file_of(on)).settings == Settings(theme="dark", font_size=14)
    on.do("settings")
    again = on.controller.preferences._dialog
    assert again is not None
    again._font.setText("")
    assert (QApplication.font().pointSizeF(), on.window.page.code.font().pointSizeF()) == (font, code)
    again.close()


def test_what_cannot_be_is_said_and_changes_nothing(on: Stage, dialog: SettingsDialog, tmp_path: Path) -> None:
    for line, text, words in (
        (dialog._font, "99", "Font size must be"),
        (dialog._folder, "/no/such/folder", "There is no folder /no/such/folder."),
        (dialog._proxy, "proxy:3128", "A proxy begins with http:// or https://."),
        (dialog._temperature, "hot", "Temperature must be"),
    ):
        before = line.text()
        line.setText(text)
        assert words in dialog._complaint.text()
        assert dialog._complaint.isVisible()
        assert on.controller.preferences.settings == Settings()
        assert line.text() == text
        line.setText(before)
        assert not dialog._complaint.isVisible()
    dialog._folder.setText(str(tmp_path))
    assert on.window.remembered("folder") == str(tmp_path)
    dialog.close()


def test_every_control_of_the_dialog_has_a_name(dialog: SettingsDialog) -> None:
    assert nameless(dialog) == []
    dialog.close()


def test_never_run_code(on: Stage, dialog: SettingsDialog) -> None:
    on.window.actions_by_id["test_as_finished"].setChecked(True)
    dialog._run_code.setChecked(False)
    dialog.accept()
    on.generate(2)
    on.finish()
    assert not on.window.actions_by_id["run_tests"].isEnabled()
    assert on.window.actions_by_id["run_tests"].toolTip() == "Running code is switched off in the settings."
    on.do("run_tests")
    assert on.runner is None


def test_a_window_starts_with_what_was_chosen(open_stage: Callable[..., Stage], tmp_path: Path) -> None:
    home = tmp_path / "home"
    keep(
        Settings(candidates=3, sampling=Sampling(0.25, top_k=7), history=False),
        home / "settings.toml",
    )
    on = open_stage()
    settings = on.window.bar.settings()
    assert (settings.candidates, settings.sampling.temperature, settings.sampling.top_k) == (3, 0.25, 7)
    assert not on.controller.history.keeping


def test_a_broken_file_is_told_of(open_stage: Callable[..., Stage], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("theme = ")
    on = open_stage()
    assert "were set aside as settings-set-aside-" in on.window.notice.sentence


def test_a_proxy_for_downloads(on: Stage, dialog: SettingsDialog) -> None:
    dialog._proxy.setText("http://localhost:3128")
    assert os.environ["HTTPS_PROXY"] == "http://localhost:3128"
    dialog._proxy.setText("")
    assert "HTTPS_PROXY" not in os.environ
    dialog.close()


def test_a_full_disk_is_told_of(on: Stage, dialog: SettingsDialog, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    dialog._candidates.setText("4")
    dialog.close()
    assert "the disk is full" in on.window.notice.sentence
