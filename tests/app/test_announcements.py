"""Screen readers hear what matters, and not more often than they can say it."""

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.controllers import announcements
from app.controllers.announcements import Announcer
from tests.app.stage import FIRST_WORDS, Stage


def test_at_most_one_sentence_in_two_seconds_and_the_last_counts(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "EVERY_S", 0.2)
    speaker = QWidget()
    qtbot.addWidget(speaker)
    news, heard = Announcer(speaker), list[str]()
    news.announced.connect(heard.append)
    news.say("one")
    qtbot.waitUntil(lambda: heard == ["one"])
    for sentence in ("two", "three", "four"):
        news.say(sentence)
    qtbot.waitUntil(lambda: len(heard) > 1)
    assert heard == ["one", "four"]
    news.close()
    news.say("five")
    qtbot.wait(300)
    assert heard == ["one", "four"]


def test_a_run_is_told_without_its_tokens(on: Stage) -> None:
    told = list[str]()
    on.controller.running.announcement.connect(told.append)
    on.window.notice.announced.connect(told.append)
    on.generate(2)
    on.finish()
    on.do("run_tests")
    on.settle()
    assert told[:3] == ["1 of 2 candidates have ended", "2 of 2 candidates have ended", "The run has ended: finished"]
    assert sorted(told[3:]) == [
        "Candidate 1: tests passed 3 of 3",
        "Candidate 2: tests failed 1 of 3",
        f"Warning: {FIRST_WORDS}",
    ]
