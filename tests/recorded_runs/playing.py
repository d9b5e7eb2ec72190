"""Plays the recorded runs' requests on real engines and says what came of them."""

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import child_process
from engine.contract import Close, Engine, Event, Load, LoadFailed, ModelChoice, Ready
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, CancelTests, RunTests
from engine.sampler.engine import SamplerEngine
from engine.scripted import ScriptedEngine, from_texts
from engine.session.driver import RunDriver
from engine.session.effects import Effect, TestPolicy
from engine.session.run import Run
from tests.recorded_runs.cases import Case

RECORD = Path(__file__).with_name("runs.json")
SMALL_MODEL = ModelChoice("smollm2-135m", draft="smollm2-135m", precision="int8", device="cpu")  # its own draft model
CONSENTS = {"consent", "same_process"}
WAIT_S = 120.0
Inbox = queue.SimpleQueue[Event | Answer]


def scripted_engine() -> Engine:
    texts = [path.read_text() for path in sorted((child_process.ROOT / "resources/recorded").glob("roman_to_int-*.md"))]
    return ScriptedEngine(from_texts(texts, chunk=40, step_s=0.0))


@contextmanager
def loaded(engine: Engine, choice: ModelChoice, inbox: Inbox) -> Iterator[Engine]:
    """The engine on a thread of its own, with its models loaded."""
    thread = threading.Thread(target=engine.run, args=(inbox.put,))
    thread.start()
    try:
        engine.submit(Load(choice))
        while not isinstance(event := inbox.get(timeout=WAIT_S), Ready):
            assert not isinstance(event, LoadFailed), event.reason
        yield engine
    finally:
        engine.submit(Close())
        thread.join(WAIT_S)


def play(cases: Sequence[Case]) -> dict[str, Any]:
    """What came of each case, by its name. ``BASSLINE_HOME`` holds the small model, or the cases are scripted."""
    inbox: Inbox = queue.SimpleQueue()
    runner = RunnerClient(inbox.put)
    outcomes: dict[str, Any] = {}
    try:
        for scripted in (True, False):
            chosen = [case for case in cases if case.scripted == scripted]
            if not chosen:
                continue
            engine = scripted_engine() if scripted else SamplerEngine()
            with loaded(engine, SMALL_MODEL, inbox):
                for case in chosen:
                    outcomes[case.name] = _outcome(_conduct(case, engine, runner, inbox), case)
    finally:
        runner.close()
    return outcomes


def _conduct(case: Case, engine: Engine, runner: RunnerClient, inbox: Inbox) -> Run:
    run = Run(case.name, case.request, case.tests)
    policy = TestPolicy(as_finished=True)
    driver = RunDriver(run, lambda: policy, consents=set(CONSENTS))

    def perform(effects: Sequence[Effect]) -> None:
        for effect in effects:
            assert not isinstance(effect, CancelTests)
            if isinstance(effect, RunTests):
                runner.test(effect)
            else:
                engine.submit(effect)

    perform(driver.begin())
    while not driver.over:
        message = inbox.get(timeout=WAIT_S)
        perform(driver.runner_answer(message) if isinstance(message, Answer) else driver.engine_event(message))
    return run


def _outcome(run: Run, case: Case) -> dict[str, Any]:
    candidates = {}
    for number, candidate in sorted(run.candidates.items()):
        report = candidate.report
        said: dict[str, Any] = {
            "text": candidate.text,
            "tokens": candidate.tokens,
            "end": f"{candidate.state}, {candidate.stop_reason}",
            "verdict": "" if report is None else f"{report.verdict}, {report.passed} of {len(report.tests)}",
        }
        if case.counts:
            said["drafts"] = f"{candidate.accepted} of {candidate.proposed}"
        candidates[str(number)] = said
    return {"outcome": run.outcome, "prompt_tokens": run.prompt_tokens, "candidates": candidates}
