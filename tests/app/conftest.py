"""Every test of the window runs off screen, and leaves no window, thread or timer behind."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QEvent, QThread, QTimer
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from app.ui.theme import Theme
from engine.scripted import Script
from tests.app.stage import Stage, stage


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    """The application's one theme; light, unless a test says otherwise."""
    return Theme(qapp)


@pytest.fixture
def open_stage(theme: Theme, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """``open_stage(script, sealed=..., hold=...)``; swept when the test is over."""
    with ExitStack() as stages:

        def enter(script: Script | None = None, **options: bool) -> Stage:
            on = stages.enter_context(stage(theme, tmp_path / "home", script, **options))
            on.window.show()
            QApplication.processEvents()
            return on

        yield enter


@pytest.fixture
def on(open_stage: Callable[..., Stage]) -> Stage:
    """The recorded answers, a prompt and tests, nothing started yet."""
    result = open_stage()
    result.write()
    return result


@pytest.fixture(autouse=True, scope="module")
def only_new_objects() -> Iterator[None]:
    """What was there before this file's tests is none that they leave behind: a million objects need no look each time.

    Frozen objects are not among ``gc.get_objects()``.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_left_behind(qapp: QApplication) -> Iterator[None]:
    yield
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QApplication.processEvents()
    windows = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    assert not windows, "a window was left open"
    # By type, not by isinstance: that asks each object, and some answer with a warning.
    ours = [thing for thing in gc.get_objects() if issubclass(type(thing), QThread | QTimer) and _alive(thing)]
    threads = [thing for thing in ours if isinstance(thing, QThread) and thing.isRunning()]
    main = [thread for thread in threads if thread is QThread.currentThread()]
    assert len(threads) == len(main), "an engine's thread was left running"
    timers = [thing for thing in ours if isinstance(thing, QTimer) and thing.isActive()]
    assert not timers, "a timer was left running"


def _alive(thing: object) -> bool:
    return isValid(thing)
