"""A runner that judges by reading, and engines that play recorded answers."""

import threading
from collections.abc import Callable, Sequence

from engine.runner.protocol import Answer, ConsentNeeded, Isolation, RunTests, TestFinished
from engine.runner.report import Report
from engine.scripted import Script, ScriptedCandidate, ScriptedEngine

RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"


class ReadingRunner:
    """Passes what holds ``+``; answers after ``seconds``, on a thread as the real one does."""

    def __init__(self, on_message: Callable[[Answer], None], seconds: float = 0.0, asks: bool = False):
        self._on_message, self._seconds, self._asks = on_message, seconds, asks
        self.tested: list[str] = []

    def probe(self) -> None:
        self._on_message(Isolation(sealed=True))

    def test(self, test: RunTests) -> None:
        self.tested.append(test.solution)
        if self._asks:
            self._on_message(ConsentNeeded(test.id, "May these tests share a process?", "same_process"))
            return
        report = Report("pass" if "+" in test.solution else "fail", "split")
        threading.Timer(self._seconds, self._on_message, [TestFinished(test.id, report)]).start()

    def close(self) -> None:
        pass


def engine(*answers: tuple[str, int], step_s: float = 0.01) -> ScriptedEngine:
    """Plays each text in so many steps."""
    return ScriptedEngine(Script(tuple(_candidate(*answer) for answer in answers), step_s=step_s, prompt_steps=1))


def _candidate(text: str, steps: int) -> ScriptedCandidate:
    size = -(-len(text) // steps)
    chunks: Sequence[str] = [text[at : at + size] for at in range(0, len(text), size)]
    return ScriptedCandidate(tuple(chunks))
