"""Functions compiled while the program runs, and what happens where nothing can be compiled."""

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


def nothing_may_be_written(module):
    raise RuntimeError("Permission denied")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("_one", lambda: 0, "does not run"), ("CompiledModule", nothing_may_be_written, "Permission denied")],
)
def test_where_nothing_can_be_compiled_torch_does_it(monkeypatch, name, value, words):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(llvm, name, value)
    assert words in llvm.why_not()
    assert words in attention.why_not(64, 64)
    assert int8.variants() == []


def test_another_processor(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "x86" in llvm.why_not()


def test_a_processor_without_the_instructions(monkeypatch):
    monkeypatch.setattr(llvm, "features", lambda: frozenset({"sse4.2"}))
    assert int8.variants() == []
    assert attention.why_not(64, 64)
