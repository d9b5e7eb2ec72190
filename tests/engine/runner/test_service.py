"""The service and its client: batches, consent, cancelling, dying in every way, and nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.runner import forms, service
from engine.runner.client import RunnerUnavailable, run_one
from engine.runner.isolation import IsolationCheck
from engine.runner.layers import ROOT, Layers
from engine.runner.protocol import (
    CancelTests,
    ConsentNeeded,
    Isolation,
    Observe,
    Observed,
    Probe,
    RunTests,
    Shutdown,
    TestFinished,
    TestProgress,
    TestStarted,
    answer_from_line,
    request_from_line,
    to_line,
)
from engine.runner.report import Report, TestResult
from engine.runner.trial import Plan
from tests.engine.runner.conftest import Bench, Witness

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
TESTS = "assert add(1, 2) == 3\nassert add(2, 2) == 4\nassert add(0, 0) == 0\n"
HANGS = "import time\ndef add(a, b):\n    time.sleep(60)\n"

REPORT = Report("fail", "in-process", "why\n", (TestResult("a", "failed", "w", 0.5),), {"files": "f"}, 1.0, 2.0, "o", 1)
MESSAGES = [
    Probe(),
    RunTests("1", "x = '\ud800 é\u2028'", "assert x", True, 1.5, 9.0, True, "env"),
    Observe(
        "1",
        "x = '\ud800'",
        ('{"given": "1"}', '{"calls": [["f", ["1"]]]}'),
        "import math",
        True,
        "env",
        1.5,
        9.0,
        False,
    ),
    CancelTests("1"),
    Shutdown(),
    Isolation(True, {"files": "f"}, "n", ("files",), "w"),
    TestStarted("1", 3),
    TestProgress("1", REPORT.tests[0]),
    ConsentNeeded("1", "s", "same_process"),
    TestFinished("1", REPORT),
    Observed("1", ('{"kind": "value"}',), "w", 0.5),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_every_message_survives_the_line(message: object) -> None:
    line = to_line(message)
    assert line.count(b"\n") == 1
    back = (
        request_from_line
        if isinstance(message, Probe | RunTests | Observe | CancelTests | Shutdown)
        else answer_from_line
    )
    assert back(line) == message


def test_the_service_starts_without_heavy_imports() -> None:
    code = (
        "import sys, engine.runner.service; print(sorted({'torch', 'PySide6', 'pytest', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.sandbox
def test_eight_candidates_are_told_apart_in_seconds(bench: Bench) -> None:
    start = time.monotonic()
    names = [bench.start(ADD if n % 2 else WRONG, TESTS) for n in range(8)]
    reports = bench.finish(*names)
    assert [reports[name].verdict for name in names] == ["fail", "pass"] * 4
    assert time.monotonic() - start < 20  # 2 to 3 on two idle cores


@pytest.mark.sandbox
def test_results_arrive_one_by_one_and_in_order(bench: Bench) -> None:
    name = bench.start(WRONG, TESTS)
    heard = []
    while not isinstance(answer := bench.answers.get(timeout=60), TestFinished):
        heard.append(answer)
    assert heard[0] == TestStarted(name, 3)
    results = [answer.result for answer in heard[1:] if isinstance(answer, TestProgress)]
    assert [(r.id, r.outcome) for r in results] == [("line 1", "failed"), ("line 2", "failed"), ("line 3", "passed")]
    assert answer.report.tests == tuple(results)
    assert answer.report.isolation == bench.isolation.isolation
    assert answer.report.weak == bench.isolation.weak


@pytest.mark.sandbox
def test_a_test_is_started_from_a_thread_that_ends(bench: Bench) -> None:
    names: list[str] = []
    thread = threading.Thread(target=lambda: names.append(bench.start("import time\ntime.sleep(0.5)\n" + ADD, TESTS)))
    thread.start()
    thread.join()
    assert bench.finish(*names)[names[0]].verdict == "pass"


@pytest.mark.sandbox
def test_cancel_ends_the_box_at_once_at_any_moment(bench: Bench) -> None:
    for delay in (*[0.0] * 40, *[n / 1000 for n in range(1, 18)], 0.05, 0.3, 0.6):
        name = bench.start(HANGS, TESTS, test_timeout_s=30.0)
        time.sleep(delay)
        start = time.monotonic()
        bench.client.cancel(name)
        report = bench.finish(name)[name]
        assert (report.verdict, report.why) == ("infra", "Stopped before it was finished.")
        assert time.monotonic() - start < 5
    assert bench.run(ADD, TESTS).verdict == "pass"
    assert bench.nothing_but_warm_boxes()


@pytest.mark.sandbox
def test_open_descriptors_of_the_program_do_not_reach_a_candidate(tmp_path: Path, own_bench: Bench) -> None:
    secret = os.open(tmp_path / "secret", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(secret, True)
    try:
        solution = """
import os
def names():
    links = (f"/proc/self/fd/{n}" for n in range(64))
    return sorted({os.readlink(link).split(":")[0] for link in links if os.path.islink(link)})
"""
        report = own_bench.run(solution, "assert names() == ['/dev/null', 'pipe']\n")
    finally:
        os.close(secret)
    assert report.verdict == "pass", report.why


@pytest.mark.sandbox
@pytest.mark.parametrize("how", ["close", "kill -9", "end of input"])
def test_nothing_outlives_the_service(how: str, own_bench: Bench) -> None:
    assert own_bench.run(ADD, TESTS).verdict == "pass"
    running = own_bench.service
    with Witness(running) as witness:
        name = own_bench.start(HANGS, TESTS, test_timeout_s=30.0)
        own_bench.until(lambda a: isinstance(a, TestStarted) and a.id == name)
        time.sleep(0.6)
        start = time.monotonic()
        if how == "close":
            own_bench.client.close()
        elif how == "kill -9":
            running.send_signal(signal.SIGKILL)
        else:
            assert own_bench.client._service is not None
            assert own_bench.client._service.stdin is not None
            own_bench.client._service.stdin.close()
        assert own_bench.finish(name)[name].verdict == "infra"
        assert time.monotonic() - start < 5
    assert len(witness.seen) >= 3
    witness.seen.add(running)
    assert witness.left(zombies=False) == []


@pytest.mark.sandbox
def test_a_service_that_died_is_started_again(own_bench: Bench) -> None:
    name = own_bench.start(HANGS, TESTS)
    own_bench.until(lambda a: isinstance(a, TestStarted))
    own_bench.service.kill()
    report = own_bench.finish(name)[name]
    assert (report.verdict, report.why) == (
        "infra",
        "The test runner stopped (exit status -9); run the tests again.",
    )
    assert own_bench.run(ADD, TESTS).verdict == "pass"


def test_a_closed_client_says_so_and_an_open_id_is_not_taken_twice(own_bench: Bench) -> None:
    own_bench.client.test(RunTests("same", HANGS, TESTS))
    with pytest.raises(ValueError, match="same"):
        own_bench.client.test(RunTests("same", ADD, TESTS))
    own_bench.client.close()
    assert own_bench.finish("same")["same"].verdict == "infra"
    own_bench.client.close()
    with pytest.raises(RunnerUnavailable):
        own_bench.client.probe()


def test_what_is_too_long_is_refused_before_it_is_sent(own_bench: Bench) -> None:
    for solution, tests in ((ADD, "#" * (70 << 20)), ("#" * (5 << 20), TESTS)):
        with pytest.raises(RunnerUnavailable, match="longer than 4 million characters"):
            own_bench.client.test(RunTests("long", solution, tests))
    assert own_bench.client._service is None


def test_a_service_that_dies_over_a_probe_answers_it(own_bench: Bench) -> None:
    own_bench.client.probe()
    own_bench.service.kill()
    found = own_bench.until(lambda a: isinstance(a, Isolation))
    assert found == Isolation(False, {}, "The test runner stopped (exit status -9); run the tests again.")


def test_never_run_code_is_heeded_by_the_service(tmp_path: Path) -> None:
    bench = Bench(never=True)
    try:
        report = bench.run(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + ADD, TESTS, consent=True)
        assert (report.verdict, report.tests) == ("infra", ())
        assert report.why == "Running code is switched off in the settings; switch it on there to run tests."
        assert bench.probe().words == report.why
        assert bench.service.children() == []
    finally:
        bench.client.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.sandbox
def test_a_slow_passing_candidate_gives_the_others_more_time(own_bench: Bench) -> None:
    slow = "import time\ndef add(a, b):\n    time.sleep(%s)\n    return a + b\n"
    tests = "assert add(1, 2) == 3\n"
    assert own_bench.run(slow % 1.5, tests, test_timeout_s=0.4).verdict == "fail"
    assert own_bench.run(slow % 0.5, tests, test_timeout_s=1.5).verdict == "pass"
    assert own_bench.run(slow % 1.5, tests, test_timeout_s=0.4).verdict == "pass"


def test_it_works_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "engine.py").write_text("raise SystemExit('the wrong engine')")
    report = run_one(ADD, TESTS, consent=True)
    assert report.verdict == "pass", report.why


class FakeTrial:
    """Late beside others, in time when it is alone."""

    alone: list[bool]
    slots: service.Slots

    unreached = False

    def __init__(
        self, test: RunTests, plan: Plan, held: IsolationCheck, store: object, progress: object, patient: bool = True
    ):
        self.patient = patient

    async def run(self) -> Report:
        FakeTrial.alone.append(FakeTrial.slots._free._value == 0)
        if self.patient:
            return replace(REPORT, tests=(TestResult("a", "passed"), TestResult("b", "timeout")))
        return replace(REPORT, verdict="pass")


@pytest.mark.parametrize(("slots", "verdict"), [(2, "pass"), (1, "fail")])
def test_who_loses_by_time_alone_runs_once_more_alone(
    slots: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "Trial", FakeTrial)
    one = service.Service(lambda answer: None, slots)
    FakeTrial.alone, FakeTrial.slots = [], one._slots
    plan = Plan(forms.parse("assert a\nassert b\n"), ("a", "b"), proved=True)

    async def main() -> Report:
        return await one._try(RunTests("1", "", ""), plan, IsolationCheck(Layers(), False, frozenset()))

    assert asyncio.run(main()).verdict == verdict
    assert plan.slowest_s == (0.5 if verdict == "pass" else 0.0)
    assert FakeTrial.alone == ([False, True] if slots == 2 else [True])


def test_alone_waits_for_the_others_and_two_of_them_do_not_deadlock() -> None:
    async def main() -> list[str]:
        slots, log = service.Slots(2), list[str]()

        async def work(name: str, place: object) -> None:
            async with place:  # type: ignore[attr-defined]
                log.append(f"+{name}")
                await asyncio.sleep(0.01)
                log.append(f"-{name}")

        await asyncio.gather(
            work("a", slots.one()), work("b", slots.alone()), work("c", slots.alone()), work("d", slots.one())
        )
        return log

    log = asyncio.run(asyncio.wait_for(main(), 5))
    for name in "bc":
        start = log.index(f"+{name}")
        assert log[start + 1] == f"-{name}"
        assert sum(entry[0] == "+" for entry in log[:start]) == sum(entry[0] == "-" for entry in log[:start])
