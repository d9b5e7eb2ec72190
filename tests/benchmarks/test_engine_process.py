"""An engine in a process of its own: it answers, fails and is measured from outside."""

import os
import sys
from dataclasses import dataclass, field
from functools import partial

import pytest

from benchmarks.engine_process import EngineProcess
from benchmarks.timing import Timing
from engine.contract import BasslineError, Request

MIB = 1 << 20


@dataclass
class Hungry:
    """Takes ``candidates`` x 32 MiB for an answer, and keeps it until it rests."""

    kept: list = field(default_factory=list)

    def rest(self):
        self.kept.clear()

    def answer(self, request):
        if request.prompt == "die":
            os._exit(9)
        if request.prompt == "fail":
            raise BasslineError("That was too much.")
        self.kept.append(b"x" * (32 * MIB * request.candidates))
        return Timing.of(1.0, [(2.0, len(self.kept))])

    def close(self):
        self.kept.clear()


class NotHere:
    def __init__(self, sentence: str):
        raise BasslineError(sentence)


def test_it_answers_and_rests_before_every_answer():
    apart = EngineProcess(Hungry)
    try:
        assert [apart.answer(Request("more", 0, 1)).tokens for _ in range(2)] == [1, 1]
        with pytest.raises(BasslineError, match=r"^That was too much\.$"):
            apart.answer(Request("fail", 0, 1))
        assert apart.answer(Request("more", 0, 1)).tokens == 1
    finally:
        apart.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak since a moment")
def test_peak_memory_is_that_of_one_answer():
    apart = EngineProcess(Hungry)
    try:
        large, small = (apart.answer(Request("more", 0, n)).peak_mib for n in (8, 1))
    finally:
        apart.close()
    assert small is not None
    assert large - small == pytest.approx(7 * 32, abs=8)


def test_a_process_that_dies_is_one_sentence():
    apart = EngineProcess(Hungry)
    with pytest.raises(BasslineError, match=r"process has ended by itself"):
        apart.answer(Request("die", 0, 1))
    with pytest.raises(BasslineError, match=r"process has ended by itself"):
        apart.close()


def test_what_cannot_be_opened_says_why():
    with pytest.raises(BasslineError, match=r"^No such model\.$"):
        EngineProcess(partial(NotHere, "No such model."))
