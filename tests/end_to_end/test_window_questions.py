"""No tests at hand, keys alone: prompt, generate, answer two questions, and the right candidate is on top and saved."""

import json
import queue
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.system.engines import recorded_answers
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.questions import Question
from engine.runner.client import RunnerClient
from engine.runner.protocol import Isolation, Observed
from engine.selection.code_blocks import solution
from tests.end_to_end.test_window_keys import Desk, Session, desk, pytestmark, running, until  # noqa: F401
from tests.engine.runner.conftest import bubblewrap_works

PROMPT = "Write roman_to_int(s): roman_to_int('IV'), roman_to_int('MCMXCIV') and roman_to_int('VI') are integers."
COUNT = 6
VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def right(numeral: str) -> int:
    values = [VALUES[letter] for letter in numeral]
    return sum(-v if v < after else v for v, after in zip(values, [*values[1:], 0], strict=True))


def keys_of_answers() -> list[str]:
    """Which key answers each question that these candidates raise; 0 where none of the answers is right."""
    texts = recorded_answers()[:COUNT]
    solutions = {n: Solution(solution(text).code, -0.2 - 0.01 * (n - 1), text) for n, text in enumerate(texts, 1)}
    elicitation = Elicitation(PROMPT, "", solutions)
    answers: queue.Queue[Any] = queue.Queue()
    client = RunnerClient(answers.put)
    client.probe()
    assert isinstance(answers.get(timeout=60), Isolation)
    for request in elicitation.requests("expected"):
        client.observe(request)
    while elicitation.observing:
        observed = answers.get(timeout=60)
        assert isinstance(observed, Observed)
        elicitation.take(observed)
    client.close()
    keys = []
    while (question := elicitation.question()) is not None:
        at = place_of_right(question)
        keys.append("0" if at is None else str(at + 1))
        elicitation.keep(question, None if at is None else elicitation.choose(question, at))
    return keys


def place_of_right(question: Question) -> int | None:
    numeral = question.given.calls[0].arguments[0].strip("'")
    texts = [choice.text for choice in question.choices]
    wanted = str(right(numeral)) if set(numeral) <= VALUES.keys() else ""
    return texts.index(wanted) if wanted in texts else None


@pytest.mark.skipif(not bubblewrap_works(), reason="without a sandbox nothing is compared by itself")
def test_two_questions_by_keys_bring_the_right_one_on_top(desk: Desk, tmp_path: Path) -> None:  # noqa: F811
    keys = keys_of_answers()
    assert len([key for key in keys if key != "0"]) >= 2
    code = tmp_path / "mine.py"
    words = [sys.executable, "main.py", "--demo"]
    with running(words, desk.env | {"BASSLINE_HOME": str(tmp_path / "home")}, desk.log) as program:
        session = Session(desk, program)
        session.fill("alt+n", str(COUNT))
        desk.keys("alt+2", "ctrl+a", "Delete")
        session.fill("alt+1", PROMPT)
        desk.keys("ctrl+Return")
        session.wait(f"{COUNT} of {COUNT} finished", 60)
        time.sleep(8)  # the candidates are compared; nothing that a key could see tells when
        for key in keys:
            desk.focus("Bassline")
            desk.keys("F9", key)
            if key != "0":
                session.wait(f"{COUNT} of {COUNT} finished, [1-9] passed", 60)
            time.sleep(4)  # the tests that go on
        session.save("ctrl+s", "Save code", code)
        run = tmp_path / "run"
        session.save("ctrl+shift+e", "Export run", run)
        until((run / "result.json").exists, 10, "result.json")
        desk.focus("Bassline")
        desk.keys("ctrl+q")
        assert program.wait(20) == 0, desk.log.read_text()
    names: dict[str, Any] = {}
    exec(code.read_text(), names)
    assert [names["roman_to_int"](n) for n in ("III", "IX", "XLII", "MCMXCIV")] == [3, 9, 42, 1994]
    result = json.loads((run / "result.json").read_bytes())
    assert len([a for a in result["behaviour"]["answers"] if a["right"]]) >= 2
    assert (run / "tests.py").read_text().count("assert roman_to_int(") >= 2
