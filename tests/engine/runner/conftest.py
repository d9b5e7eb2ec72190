import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, ConsentNeeded, Isolation, RunTests, TestFinished
from engine.runner.report import Report

ATTACKS = Path(__file__).resolve().parents[2] / "attacks/cases"


class Bench:
    """A client, and a wait for its answers."""

    def __init__(self, never: bool = False) -> None:
        self.answers: queue.Queue[Answer] = queue.Queue()
        self.client = RunnerClient(self.answers.put, never)
        self._count = 0
        self.isolation = Isolation(False)

    def probe(self) -> Isolation:
        self.client.probe()
        found = self.until(lambda a: isinstance(a, Isolation))
        assert isinstance(found, Isolation)
        self.isolation = found
        return found

    def start(self, solution: str, tests: str, **more: object) -> str:
        self._count += 1
        name = f"run {self._count}"
        self.client.test(RunTests(name, solution, tests, **more))
        return name

    def until(self, done: Callable[[Answer], bool]) -> Answer:
        while True:
            answer = self.answers.get(timeout=60)
            if done(answer):
                return answer

    def finish(self, *names: str) -> dict[str, Report]:
        reports: dict[str, Report] = {}
        while len(reports) < len(names):
            answer = self.until(lambda a: isinstance(a, TestFinished | ConsentNeeded))
            assert isinstance(answer, TestFinished), answer
            assert answer.id in names
            reports[answer.id] = answer.report
        return reports

    def run(self, solution: str, tests: str, **more: object) -> Report:
        name = self.start(solution, tests, **more)
        return self.finish(name)[name]

    def asks(self, solution: str, tests: str) -> str:
        """The sentence that asks for one process; fails where the tests are simply run."""
        self.start(solution, tests)
        answer = self.until(lambda a: isinstance(a, TestFinished | ConsentNeeded))
        assert isinstance(answer, ConsentNeeded), answer
        assert answer.kind == "same_process"
        return answer.sentence

    def nothing_but_warm_boxes(self, seconds: float = 10.0) -> bool:
        """Whether, in time, the service's only processes are those of the boxes that wait for the next candidate.

        A pair is two boxes, and a sealed box is three processes. Anything an ended box left behind would be one more.
        """
        pairs = min(max(1, (os.cpu_count() or 1) - 1), 4)
        end = time.monotonic() + seconds
        while len(self.service.children(recursive=True)) != pairs * 2 * 3 and time.monotonic() < end:
            time.sleep(0.02)
        return len(self.service.children(recursive=True)) == pairs * 2 * 3

    @property
    def service(self) -> psutil.Process:
        """The one child of this process that is a runner service of this client."""
        assert self.client._service is not None
        return psutil.Process(self.client._service.pid)


def bubblewrap_works() -> bool:
    """Whether this computer allows it at all: if so, a box of ours that is not sealed is a failure, not a skip."""
    program = shutil.which("bwrap")
    trial = ["--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return program is not None and subprocess.run([program, *trial], capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def sealed_bench() -> Iterator[Bench]:
    if not bubblewrap_works():
        pytest.skip("bubblewrap is not installed, or not allowed to make namespaces")
    bench = Bench()
    bench.probe()
    assert bench.isolation.sealed, bench.isolation.note
    yield bench
    bench.client.close()


@pytest.fixture
def bench(sealed_bench: Bench) -> Bench:
    """A sealed runner, warm; one for all tests, as in the application."""
    return sealed_bench


@pytest.fixture
def own_bench() -> Iterator[Bench]:
    """A runner of this test alone, for tests that end it or start it in another surrounding."""
    bench = Bench()
    yield bench
    bench.client.close()


class Witness:
    """Sees every process below the service while a test runs, to say afterwards which are left."""

    def __init__(self, service: psutil.Process):
        self.service, self.seen = service, set[psutil.Process]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Witness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.03):
            try:
                self.seen |= set(self.service.children(recursive=True))
            except psutil.NoSuchProcess:
                return

    def left(self, seconds: float = 2.0, zombies: bool = True) -> list[psutil.Process]:
        """Who is still there after at most ``seconds``; ``zombies`` False: those that only init has to reap are not."""
        end = time.monotonic() + seconds
        while (left := [p for p in self.seen if self._is_there(p, zombies)]) and time.monotonic() < end:
            time.sleep(0.01)
        return left

    @staticmethod
    def _is_there(process: psutil.Process, zombies: bool) -> bool:
        try:
            return process.is_running() and (zombies or process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False
