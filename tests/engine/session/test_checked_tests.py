"""A text of tests is read once, however many candidates there are."""

import asyncio
from collections.abc import Callable, Iterator
from io import StringIO

import pytest

from app.cli.generation import CommandLineRun, Job
from app.cli.progress import SilentProgress
from engine.contract import ModelChoice, Request
from engine.runner import forms, service, trial
from engine.runner.isolation import IsolationCheck
from engine.runner.layers import Layers
from engine.runner.ledger import Ledger
from engine.runner.protocol import Answer, Isolation, RunTests, TestFinished
from engine.runner.report import Report, TestResult
from engine.scripted import ScriptedEngine, from_texts
from engine.session import checked_tests
from engine.session.checked_tests import TOO_DEEP, check

SCRIPT = "from solution import f\nassert f(1)\nassert f(2)\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that were read, in order."""
    texts: list[str] = []
    parse = forms.parse

    def counted(text: str, form: str = "") -> forms.TestSource:
        texts.append(text)
        return parse(text, form)

    monkeypatch.setattr(forms, "parse", counted)
    checked_tests.check.cache_clear()
    yield texts
    checked_tests.check.cache_clear()


@pytest.mark.parametrize(
    ("tests", "sentence"),
    [
        ("assert f(", "Your tests do not parse"),
        ("x = 1\n", forms.NO_TEST),
        ("input:\n1\n", "Every section input:"),
    ],
)
def test_tests_that_cannot_be_used_have_a_sentence(tests: str, sentence: str) -> None:
    found = check(tests)
    assert found.source is None
    assert found.objection.startswith(sentence)


def test_tests_that_are_too_deep_have_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(text: str) -> forms.TestSource:
        raise RecursionError

    monkeypatch.setattr(forms, "parse", too_deep)
    checked_tests.check.cache_clear()
    assert check("assert f(1)  # deep").objection == TOO_DEEP
    checked_tests.check.cache_clear()


class PassingRunner:
    def __init__(self, answer: Callable[[Answer], None]):
        self._answer = answer

    def probe(self) -> None:
        self._answer(Isolation(True))

    def test(self, test: RunTests) -> None:
        self._answer(TestFinished(test.id, Report("pass", "split", tests=(TestResult("line 2", "passed"),))))

    def cancel(self, id: str) -> None: ...

    def close(self) -> None: ...


def test_a_run_reads_its_tests_once(parsed: list[str]) -> None:
    engine = ScriptedEngine(
        from_texts(["```python\ndef f(x): return 1\n```", "```python\ndef f(x): return 2\n```"], step_s=0.001)
    )
    job = Job(Request("write f", 7, 5), ModelChoice("scripted"), SCRIPT)
    played = CommandLineRun(job, lambda: engine, PassingRunner, lambda sentence: True, SilentProgress(StringIO()))
    played.play()
    assert sum(candidate.report is not None for candidate in played.run.candidates.values()) > 1
    assert parsed == [SCRIPT]


class FailingTrial:
    unreached = False

    def __init__(self, *arguments: object, **more: object): ...

    async def run(self) -> Report:
        return Report("fail", "split", tests=(TestResult("line 2", "failed"),))


def test_the_service_reads_tests_once_for_all_candidates(parsed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "Trial", FailingTrial)
    said: list[Answer] = []
    one = service.Service(said.append, 2)
    held = IsolationCheck(Layers(), False, frozenset(("test_verdict",)))

    async def look(folder: str) -> IsolationCheck:
        return held

    async def main() -> None:
        monkeypatch.setattr(one, "_what_holds", look)
        for number in range(4):
            await one._test(RunTests(str(number), f"def f(x): return {number}", SCRIPT, consent=True))
        await one._store.close()

    asyncio.run(main())
    assert [answer.report.verdict for answer in said if isinstance(answer, TestFinished)] == ["fail"] * 4
    assert parsed == [SCRIPT]


@pytest.mark.parametrize("collected", [("test_a",), ()], ids=["tests", "none"])
def test_tests_that_pytest_lists_are_read_once_too(
    collected: tuple[str, ...], parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listed(source: forms.TestSource, held: object, store: object) -> Ledger:
        ledger = Ledger((), (), ())
        ledger.collected = ledger.shown = collected
        return ledger

    monkeypatch.setattr(trial, "_listed", listed)
    text = "from solution import f\n@decorated\ndef test_a(): assert f(1)\nassert f(2)\n"
    held = IsolationCheck(Layers(), False, frozenset())
    plan = asyncio.run(trial.make_plan(text, held, None))  # type: ignore[arg-type]
    assert plan.source.form == (forms.PYTEST if collected else forms.SCRIPT)
    assert parsed == [text]
