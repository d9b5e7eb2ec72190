"""From the command to the window and out again: application, event loop, crash log, orderly shutdown."""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QSocketNotifier, Qt, QTimer
from PySide6.QtWidgets import QApplication

import qasync  # isort: skip - it looks for a Qt that was imported before it

from app.controllers.model_load import OpenEngine
from app.system import display_errors
from app.system.crash_log import CrashLog, log
from app.system.engines import SCRIPTED, open_engine
from app.system.leaving import leave
from app.system.runner_connection import OpenRunner
from app.system.single_instance import SingleInstance
from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from app.window.controller import MainController
from engine.models.catalog import DEFAULT, catalog
from engine.runner.client import RunnerClient
from engine.session import paths
from engine.session.journal import history_file

_log = logging.getLogger(__name__)
PRELOAD_MS = 400


def _complain(why: str) -> int:
    print(why, file=sys.stderr)
    return 2


def main(argv: list[str], no_window: Callable[[str], int] = _complain) -> int:
    """Open the window and stay until it is closed. ``--demo`` plays a recorded run. Returns the exit code.

    ``no_window`` is told why no window can open, and gives the exit code for that.
    """
    with display_errors.failures_reported(no_window):
        application = QApplication(["bassline", *argv])
    application.setDesktopFileName("bassline")
    application.setQuitOnLastWindowClosed(False)  # our own event ends the loop, after an orderly shutdown
    alone = SingleInstance(paths.data())
    if not alone.claim():
        print(tr("Bassline is already open; its window was brought to the front."), file=sys.stderr)
        return 0
    crashes = CrashLog(paths.logs())
    with crashes.installed():
        try:
            clean = _open(application, alone, crashes, demo="--demo" in argv)
        except BaseException:
            crashes.note_end()
            leave(1)  # here, where the window still lives: destroyed under its threads, it would abort
        alone.close()
        if not clean:
            # Files are whole and the test boxes are gone; only a thread that does not listen is left, deep in a
            # library's import or a long kernel. Leaving the usual way would abort because of it.
            log.warning("the engine did not end within 5 s; its stacks are in crash.log")
            crashes.dump_stacks()
        if not clean or threading.active_count() > 1:
            leave(0)
    return 0


def _open(application: QApplication, alone: SingleInstance, crashes: CrashLog, demo: bool) -> bool:
    """The window, from its first moment to its last; false if the engine would not end."""
    controller = build(Theme(application), open_engine, RunnerClient, paths.settings(), history_file())
    alone.raise_wanted.connect(controller.window.come_to_front)
    crashes.broke.connect(controller.window.notice.say, Qt.ConnectionType.QueuedConnection)
    with qasync.QEventLoop(application) as loop:
        return bool(loop.run_until_complete(_live(controller, demo)))


def build(theme: Theme, engine: OpenEngine, runner: OpenRunner, settings: Path, history: Path) -> MainController:
    """The window with everything behind it, not shown yet. ``settings`` is a folder, ``history`` a file."""
    window = MainWindow(theme, model_names(), settings)
    return MainController(window, theme, engine, runner, settings / "settings.toml", history)


def model_names() -> list[tuple[str, str]]:
    """Title and name of what the model box offers."""
    known = [(entry.title, entry.name) for entry in catalog().model]
    return [(tr("Default for this machine"), DEFAULT), *known, (tr("Scripted demo (no model)"), SCRIPTED)]


async def _live(controller: MainController, demo: bool) -> bool:
    """Until the window has closed; false if the engine would not end."""
    over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    controller.closed.connect(over.set_result)
    with _signals_close(controller):
        controller.window.show()
        _log.info("the window is open")
        controller.history.recover()
        if demo:
            QTimer.singleShot(0, controller.offer_demo)
        else:  # when the window has been painted and the first keys are in
            QTimer.singleShot(PRELOAD_MS, controller.get_ready)
        return await over


@contextlib.contextmanager
def _signals_close(controller: MainController) -> Iterator[None]:
    """Ctrl-C in the terminal and a polite kill close the window as its own button does, without the question."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    before_fd = signal.set_wakeup_fd(far.fileno())
    notifier = QSocketNotifier(near.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(controller.shut_down)
    try:
        yield
    finally:
        notifier.setEnabled(False)
        signal.set_wakeup_fd(before_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        near.close()
        far.close()
