import queue
from collections.abc import Iterator

import pytest

from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.outcomes import Outcome
from engine.runner.client import RunnerClient
from engine.runner.encoding import encode
from engine.runner.protocol import Answer, Isolation, Observed, RunTests, TestFinished
from engine.runner.report import Report
from tests.engine.runner.conftest import bubblewrap_works


class Boxes:
    """A runner, warm; observes candidates, and runs tests on one."""

    def __init__(self) -> None:
        self.answers: queue.Queue[Answer] = queue.Queue()
        self.client = RunnerClient(self.answers.put)
        self._count = 0

    def probe(self) -> Isolation:
        self.client.probe()
        answer = self.answers.get(timeout=60)
        assert isinstance(answer, Isolation)
        return answer

    def observed(self, elicitation: Elicitation) -> Elicitation:
        self._count += 1
        for request in elicitation.requests(f"o{self._count}"):
            self.client.observe(request)
        while elicitation.observing:
            answer = self.answers.get(timeout=60)
            assert isinstance(answer, Observed), answer
            elicitation.take(answer)
        return elicitation

    def compare(self, prompt: str, *codes: str, tests: str = "") -> Elicitation:
        solutions = {number: Solution(code) for number, code in enumerate(codes, 1)}
        return self.observed(Elicitation(prompt, tests, solutions))

    def outcomes(self, prompt: str, code: str) -> dict[str, Outcome]:
        """What one candidate did, by the text of the input."""
        elicitation = self.compare(prompt, code)
        seen = elicitation.candidates[1].outcomes
        return {given.text: outcome for given, outcome in zip(elicitation.inputs, seen, strict=True)}

    def report(self, code: str, tests: str) -> Report:
        self._count += 1
        self.client.test(RunTests(f"t{self._count}", code, tests))
        while True:
            answer = self.answers.get(timeout=60)
            if isinstance(answer, TestFinished):
                return answer.report


@pytest.fixture(scope="session")
def boxes() -> Iterator[Boxes]:
    if not bubblewrap_works():
        pytest.skip("bubblewrap is not installed, or not allowed to make namespaces")
    made = Boxes()
    assert made.probe().sealed
    yield made
    made.client.close()


def value(result: object, **more: object) -> Outcome:
    """What a candidate did that gave ``result``."""
    return Outcome("value", encode(result), **more)  # type: ignore[arg-type]


def raised(error: str) -> Outcome:
    return Outcome("raised", error=error)
