"""The log tells what was decided, and keeps to itself what people and models wrote."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import child_process, event_log, logs
from engine.contract import CandidateFinished, Generate, Load, LoadFailed, ModelChoice, Request, RunFinished

PROMPT = "Write the secret function."
SERVER = ModelChoice(server="https://me:hunter2@gpu.example/v1?key=abc")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    names = (*logs._OURS, *logs._LIBRARIES)
    before = {name: logging.getLogger(name).level for name in names}
    yield tmp_path / "run.log"
    for name, level in before.items():
        logger = logging.getLogger(name)
        for handler in [h for h in logger.handlers if isinstance(h, logging.FileHandler)]:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
    for name in (logs._FILE, logs._TEXTS):
        os.environ.pop(name, None)


def tell_a_run(choice: ModelChoice) -> None:
    tells = event_log.EventLog()
    tells.message(Load(choice))
    tells.message(Generate("run", Request(PROMPT, seed=7, system="a secret system")))
    tells.event(CandidateFinished("run", 1, "done", "stop", "a secret answer", 12, 8, 5, -0.5, 1.25))
    tells.event(LoadFailed("It said: a secret prompt"))
    tells.event(RunFinished("run", "failed", reason="It said: a secret prompt", details="a secret trace"))


def test_what_was_decided_is_there_and_what_was_written_is_not(file: Path) -> None:
    logs.start(file)
    tell_a_run(SERVER)
    text = file.read_text()
    assert "seed=7" in text
    assert "candidate 1 done (stop) at 1.250 s: 12 tokens, 5 of 8 drafts accepted; text: 15 characters" in text
    assert "server=https://gpu.example/v1" in text
    assert "secret" not in text
    assert "hunter2" not in text


def test_reasons_of_the_own_engine_are_shown(file: Path) -> None:
    logs.start(file)
    event_log.EventLog().event(LoadFailed("There is no model of that name."))
    assert "There is no model of that name." in file.read_text()


def test_text_comes_when_it_was_asked_for(file: Path) -> None:
    logs.start(file, texts=True)
    tell_a_run(SERVER)
    text = file.read_text()
    assert repr(PROMPT) in text
    assert "a secret answer" in text
    assert "It said: a secret prompt" in text


def test_requests_of_the_library_keep_their_numbers_and_lose_their_keys(file: Path) -> None:
    logs.start(file)
    url = "https://u:p@hub.example/model?X-Signature=abc"
    logging.getLogger("httpx2").info('HTTP Request: %s %s "%s %d %s"', "GET", url, "HTTP/1.1", 200, "OK")
    assert file.read_text().endswith('HTTP Request: GET https://hub.example/model "HTTP/1.1 200 OK"\n')


def test_children_write_into_the_same_file(file: Path) -> None:
    logs.start(file)
    logging.getLogger("engine.parent").info("before")
    code = (
        "import logging; from engine import logs; logs.start_in_child(); logging.getLogger('engine.child').info('here')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=child_process.environment(), cwd=file.parent)
    logging.getLogger("engine.parent").info("after")
    assert [line.rpartition(": ")[2] for line in file.read_text().splitlines()[1:]] == ["before", "here", "after"]


def test_without_a_file_nothing_is_written(tmp_path: Path, file: Path) -> None:
    logs.start_in_child()
    tell_a_run(ModelChoice())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(OSError, match="Is a directory"):
        logs.start(tmp_path)
    assert logs._FILE not in os.environ


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_ends_the_log_with_one_sentence(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs.start(Path("/dev/full"))
    for _ in range(3):
        logging.getLogger("engine.test").info("something")
    logs.start(file)  # closes the one before
    assert capfd.readouterr().err == "bassline: The log /dev/full ends here: No space left on device.\n"


def test_what_is_no_text_is_logged_all_the_same(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs.start(file)
    logging.getLogger("engine.test").info("half a pair: %s", "\ud800")
    assert "half a pair: \\ud800" in file.read_text()
    assert capfd.readouterr().err == ""
