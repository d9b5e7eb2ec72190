"""What of the time counts against a candidate, and against which of its tests."""

import time

from engine.runner.stopwatch import Stopwatch

LOOKS_S = 0.3  # several looks of the stopwatch's thread


class FakeLink:
    """Has waited as long as it is told."""

    bookkeeping_s, questions, seconds = 0.0, 0, 0.0

    def waited_s(self) -> float:
        return self.seconds


def started() -> tuple[FakeLink, Stopwatch, list[str]]:
    link, late = FakeLink(), list[str]()
    return link, Stopwatch(link, 1.0, late.append), late


def soon(late: list[str], wanted: list[str]) -> None:
    end = time.monotonic() + 20
    while late != wanted and time.monotonic() < end:
        time.sleep(0.01)
    assert late == wanted


def test_each_test_has_the_limit_to_itself() -> None:
    link, watch, late = started()
    link.seconds = 5.0  # importing the candidate, say
    watch.start("a")
    link.seconds = 5.9
    time.sleep(LOOKS_S)
    assert late == []
    watch.start("b")
    link.seconds = 6.8
    time.sleep(LOOKS_S)
    assert late == []
    link.seconds = 7.0
    soon(late, ["b"])


def test_a_test_is_late_once_and_not_after_its_end() -> None:
    link, watch, late = started()
    watch.start("a")
    link.seconds = 2.0
    soon(late, ["a"])
    time.sleep(LOOKS_S)
    assert late == ["a"]
    watch.start("b")
    watch.stop()
    link.seconds = 9.0
    time.sleep(LOOKS_S)
    assert late == ["a"]


def test_what_the_messages_themselves_take_is_not_the_candidate_s() -> None:
    link, watch, late = started()
    watch.start("a")
    link.bookkeeping_s, link.seconds = 0.8, 1.7
    time.sleep(LOOKS_S)
    assert late == []
    link.questions, link.seconds = 500, 2.2
    time.sleep(LOOKS_S)
    assert late == []
    link.seconds = 2.4
    soon(late, ["a"])
