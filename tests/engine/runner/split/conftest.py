"""Both ends of the conversation in one process."""

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.runner.split.candidate import CandidateLink
from engine.runner.split.crossing import LinkBroken
from engine.runner.split.tests import TestsLink

MADE: dict[str, Callable[[], Any]] = {}  # what a test file has the candidate's end make, by name


class Echo(CandidateLink):
    """A candidate's end that gives back what it got, and keeps what it is told to keep."""

    def __init__(self, source: int, sink: int):
        super().__init__(source, sink, "")
        self.kept: list[Any] = []

    def serve(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        match operation:
            case "echo":
                return arguments[0]
            case "keep":
                return self.kept.append(arguments[0])
            case "kept":
                return self.kept[-1]
            case "change":
                return arguments[0](self.kept[-1])
            case "make":
                return MADE[arguments[0]]()
        return super().serve(operation, arguments)

    def news(self, letter: object) -> dict[str, Any]:
        return {}

    def loop(self) -> None:
        try:
            while True:
                with self._lock:
                    question = self.receive()
                self.answer(question)
        except LinkBroken:
            pass


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[TestsLink, Echo]]:
    questions, answers = os.pipe(), os.pipe()
    tests, candidate = TestsLink(answers[0], questions[1]), Echo(questions[0], answers[1])
    thread = threading.Thread(target=candidate.loop)
    thread.start()
    yield tests, candidate
    os.close(questions[1])
    thread.join()
    for end in (tests._source, candidate._source):
        end.close()
    os.close(answers[1])


@pytest.fixture
def link(ends: tuple[TestsLink, Echo]) -> TestsLink:
    ends[0].soft = False
    return ends[0]
