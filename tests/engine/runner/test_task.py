"""What a box is asked to do, on its way there."""

import ast
import asyncio
import dataclasses
import json
from typing import cast

import pytest

from engine.runner import forms
from engine.runner.box import Box
from engine.runner.layers import INSIDE
from engine.runner.pair import Pair
from engine.runner.task import Task

TEXTS = {
    forms.SCRIPT: "from __future__ import annotations\nfrom solution import *\nassert all([f(1), g])\nassert f(2)\n",
    forms.PYTEST: "import pytest\nfrom solution import f\n\ndef test_f():\n    assert f(1) == 2\n",
    forms.CHECK: "def check(candidate):\n    assert candidate(1) == 2\n",
    forms.DOCTEST: ">>> f(1)  # doctest: +ELLIPSIS\n'a...'\n>>> f(None)\nTraceback (most recent call last):\nE: no\n",
    forms.EXAMPLES: "input:\n1 2\noutput:\n3\ninput:\n\noutput:\n0\n",
    forms.COMMAND: "$ python solution.py --self-test\n$ true\n",
}
WHOLE = Task(
    "def f(): return '\udc80'\n", {"text": "é"}, ("a",), ("a", "b"), ("x", "y"), "f", 2.5, key="key", seconds=30.0
)


@pytest.mark.parametrize("task", [WHOLE, Task(None), Task("")], ids=["whole", "listing", "empty"])
def test_a_task_is_the_same_one_in_the_box(task: Task) -> None:
    data = task.to_bytes()
    assert data.isascii()
    assert Task.from_bytes(data) == task


def test_a_task_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        WHOLE.key = "another"  # type: ignore[misc]


def test_every_box_sees_the_file_that_reads_its_task() -> None:
    assert all("task" in files for files in INSIDE.values())


def test_tests_and_candidate_never_see_each_other_s_text() -> None:
    class Listener:
        task: Task

        async def give(self, task: Task) -> None:
            self.task = task

    main, candidate = Listener(), Listener()
    asyncio.run(Pair(cast(Box, main), cast(Box, candidate), b"", 0.0).give(WHOLE, "secret", 3.0))
    assert candidate.task == Task(WHOLE.solution, seconds=3.0)
    assert main.task == dataclasses.replace(WHOLE, solution="", key="secret", seconds=3.0)
    alone = Listener()
    asyncio.run(Pair(cast(Box, alone), None, b"", 0.0).give(WHOLE, "secret", 3.0))
    assert alone.task == dataclasses.replace(WHOLE, key="secret", seconds=3.0)


@pytest.mark.parametrize("form", TEXTS)
def test_tests_of_every_form_are_the_same_in_the_box_without_being_read_again(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = forms.parse(TEXTS[form])
    assert source.form == form
    monkeypatch.setattr(forms, "parse", None)
    task = Task.from_bytes(Task("", source.to_data()).to_bytes())
    found = forms.TestSource.from_data(task.tests)
    assert ast.dump(found.tree, include_attributes=True) == ast.dump(source.tree, include_attributes=True)
    assert dataclasses.replace(found, tree=source.tree) == source


def test_tests_that_pytest_has_been_asked_about_need_no_second_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from solution import *\nif f(0):\n    def test_f(): assert f(1)\nassert f(1)\nassert f(2)\n"
    source = forms.parse(text)
    assert source.listed
    as_pytest, as_script = forms.parse(text, forms.PYTEST), forms.parse(text, forms.SCRIPT)
    monkeypatch.setattr(forms, "parse", None)
    for found, expected in ((source.as_pytest(), as_pytest), (source.as_script(), as_script)):
        assert json.dumps(found.to_data()) == json.dumps(expected.to_data())


def test_a_file_in_which_nothing_can_fail_is_refused() -> None:
    with pytest.raises(forms.BrokenTests, match="hold no test"):
        forms.parse("from helpers import *\n").as_script()
