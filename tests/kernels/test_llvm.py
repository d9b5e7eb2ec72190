"""Loops compiled while the program runs: the threads they run on, and what happens where nothing can be compiled."""

import platform

import pytest

from kernels import llvm
from kernels.attention import native as attention
from kernels.int8_linear import native as int8


@pytest.fixture(autouse=True)
def asked_anew():
    for question in (llvm.why_not, attention.why_not):
        question.cache_clear()
    yield
    for question in (llvm.why_not, attention.why_not):
        question.cache_clear()


@pytest.mark.skipif(bool(llvm.why_not()), reason=llvm.why_not() or "compiled")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_takes_part(threads):
    assert llvm._counted(threads) == [1] * threads


def nothing_may_be_written(module):
    raise RuntimeError("Permission denied")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("_team", dict, "other threads"),
        ("_counted", lambda threads: [1, 0], "do not run"),
        ("Compiled", nothing_may_be_written, "Permission denied"),
    ],
)
def test_where_nothing_can_be_compiled_torch_does_it(monkeypatch, name, value, words):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(llvm, name, value)
    if name != "_team":
        monkeypatch.setattr(llvm, "_team", lambda: {"GOMP_parallel": 1})
    assert words in llvm.why_not()
    assert words in attention.why_not(64, 64)
    assert int8.ways() == []


def test_another_processor(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "x86" in llvm.why_not()
