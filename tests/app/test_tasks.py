"""Work on another thread comes home into the main thread, or nowhere if nobody lives there any more."""

import threading
import time
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QApplication
from shiboken6 import delete

from app.system.tasks import Task, main_thread_call
from engine.contract import BasslineError


def settle(seconds: float, heard: list[Any] | None = None, count: int = 1) -> None:
    """Let events be delivered, for so long or until so much was heard."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (heard is None or len(heard) < count):
        QCoreApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_a_result_and_a_sentence_arrive_in_the_main_thread(qapp: QApplication) -> None:
    errand, heard = Task(), list[Any]()
    errand.done.connect(lambda result: heard.append((result, threading.current_thread())))
    errand.failed.connect(lambda sentence: heard.append((sentence, threading.current_thread())))
    errand.run(lambda: 42)
    settle(5, heard)

    def fail() -> None:
        raise BasslineError("No.")

    errand.run(fail)
    settle(5, heard, 2)
    assert heard == [(42, threading.main_thread()), ("No.", threading.main_thread())]
    assert not errand.busy


def test_what_is_forgotten_says_nothing(qapp: QApplication) -> None:
    errand, heard = Task(), []
    errand.done.connect(heard.append)
    errand.run(lambda: "old")
    errand.run(lambda: "new")
    settle(5, heard)
    settle(0.2)
    assert heard == ["new"]


def test_whoever_dies_while_the_work_ends_is_not_touched(qapp: QApplication) -> None:
    for _ in range(200):
        parent = QObject()
        Task(parent).run(lambda: None)
        delete(parent)
        QCoreApplication.processEvents()
    settle(0.2)


def test_a_door_leads_nowhere_once_its_owner_is_gone(qapp: QApplication) -> None:
    called: list[str] = []
    owner = QObject()
    door = main_thread_call(owner)
    door(lambda each: called.append("lives"))
    settle(1, called)
    delete(owner)
    door(lambda each: called.append("gone"))
    settle(0.1)
    assert called == ["lives"]
