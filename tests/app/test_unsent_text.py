"""A prompt that was typed and not sent is there again, whatever became of the window."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.controllers import unsent_text
from engine.scripted import from_texts
from tests.app.stage import Stage

PROMPT, TESTS = "Sort a list\r\nof “words”\u2028without a loop.", "assert f() == 1\n"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsent_text, "EVERY_MS", 10)


def file_of(on: Stage) -> Path:
    return on.controller.unsent._file


def texts(on: Stage) -> tuple[str, str]:
    return on.window.prompt.text(), on.window.tests.text()


def test_what_stands_in_the_editors_is_there_again_after_closing(open_stage: Callable[..., Stage]) -> None:
    first = open_stage()
    first.write(PROMPT, TESTS)
    before = texts(first)
    first.controller.shut_down()
    again = open_stage()
    assert texts(again) == before
    assert "Sort a list" in before[0]


@pytest.mark.usefixtures("soon")
def test_it_is_written_while_one_types_so_a_kill_loses_little(open_stage: Callable[..., Stage]) -> None:
    first = open_stage()
    first.write(PROMPT, "")
    first.wait_until(lambda: file_of(first).exists())
    killed = open_stage()  # beside the first one, which has not been closed
    assert texts(killed) == texts(first)


@pytest.mark.usefixtures("soon")
def test_a_prompt_that_became_a_run_is_the_historys(open_stage: Callable[..., Stage]) -> None:
    on = open_stage(from_texts(["x = 1"]))
    on.write("Write x.", TESTS)
    on.wait_until(lambda: file_of(on).exists())
    on.generate(1)
    on.finish()
    on.wait_until(lambda: not file_of(on).exists())
    on.write("Write y.", TESTS)
    on.wait_until(lambda: file_of(on).exists())


def test_who_keeps_no_history_leaves_nothing_here(open_stage: Callable[..., Stage]) -> None:
    on = open_stage()
    on.controller.preferences._apply(replace(on.controller.preferences.settings, history=False))
    on.write(PROMPT, TESTS)
    on.controller.shut_down()
    assert not file_of(on).exists()


@pytest.mark.parametrize("junk", ["", "{", "[1]", '{"prompt": 1}', "\udcff"])
def test_a_file_that_says_nothing_is_passed_over(open_stage: Callable[..., Stage], tmp_path: Path, junk: str) -> None:
    file = tmp_path / "home" / "unsent.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(junk.encode("utf-8", "surrogateescape"))
    assert texts(open_stage()) == ("", "")


def test_a_disk_that_takes_nothing_is_one_sentence(
    open_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsent_text, "EVERY_MS", 10)
    on = open_stage()
    file_of(on).mkdir()  # where the file should be
    on.write(PROMPT, TESTS)
    on.wait_until(lambda: bool(on.window.notice.sentence))
    assert "unsent.json" in on.window.notice.sentence
