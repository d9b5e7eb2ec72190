"""The application's end of the runner service: starts it when it is first needed, and again if it died."""

import queue
import subprocess
import sys
import threading
from collections.abc import Callable

from engine import child_process
from engine.contract.errors import BasslineError
from engine.runner import forms
from engine.runner.layers import ROOT
from engine.runner.protocol import (
    Answer,
    CancelTests,
    ConsentNeeded,
    Isolation,
    Observe,
    Observed,
    Probe,
    Request,
    RunTests,
    Shutdown,
    TestFinished,
    answer_from_line,
    to_line,
)
from engine.runner.report import Report
from engine.runner.verdicts import Verdict

_CLOSE_S = 3.0


class RunnerUnavailable(BasslineError):
    """Tests cannot be run on this computer."""


class RunnerClient:
    """``on_message`` hears every answer on a reader thread and must return at once. Methods never wait for answers.

    ``never``: the user has switched off that code is run; every test is answered so.
    """

    program = ("-m", "engine.runner.service")  # what the interpreter is started with

    def __init__(self, on_message: Callable[[Answer], None], never: bool = False):
        self._on_message, self._never = on_message, never
        self._lock = threading.Lock()
        self._service: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._open: dict[str, subprocess.Popen[bytes]] = {}  # test id -> the service that has it
        self._observations: set[str] = set()  # those of the open ids that are answered by Observed
        self._probes: list[subprocess.Popen[bytes]] = []  # one entry per probe that is not answered yet
        self._closed = False

    def test(self, test: RunTests) -> None:
        """Answered as ``RunTests`` says. Raises ValueError for an id that is open, RunnerUnavailable where it cannot
        be.
        """
        for name, text in (("Your tests are", test.tests), ("The candidate is", test.solution)):
            if len(text) > forms.LONGEST:
                raise RunnerUnavailable(
                    f"{name} longer than {forms.LONGEST >> 20} million characters; keep that shorter."
                )
        self._send(test)

    def observe(self, request: Observe) -> None:
        """Answered as ``Observe`` says. Raises as ``test`` does."""
        if len(request.solution) > forms.LONGEST:
            raise RunnerUnavailable(f"The candidate is longer than {forms.LONGEST >> 20} million characters.")
        self._send(request)

    def cancel(self, id: str) -> None:
        with self._lock:
            known = id in self._open
        if known:
            self._send(CancelTests(id))

    def probe(self) -> None:
        """Answered by Isolation."""
        self._send(Probe())

    def close(self) -> None:
        """Ends the service with everything it runs; open tests are answered as *infra*. A few seconds at most."""
        with self._lock:
            self._closed = True
            service, reader = self._service, self._reader
        if service is None or reader is None:
            return
        self._write(service, Shutdown())
        try:
            service.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            service.kill()
        if reader is not threading.current_thread():
            reader.join(_CLOSE_S)

    def _send(self, request: Request) -> None:
        with self._lock:
            if self._closed:
                raise RunnerUnavailable("The test runner has been closed; start Bassline again to run tests.")
            if isinstance(request, RunTests | Observe) and request.id in self._open:
                raise ValueError(f"a test run named {request.id!r} is open")
            service = self._running()
            if isinstance(request, RunTests | Observe):
                self._open[request.id] = service
                if isinstance(request, Observe):
                    self._observations.add(request.id)
            elif isinstance(request, Probe):
                self._probes.append(service)
        self._write(service, request)

    @staticmethod
    def _write(service: subprocess.Popen[bytes], request: Request) -> None:
        assert service.stdin is not None
        try:
            service.stdin.write(to_line(request))
            service.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has died; the reader thread answers for it

    def _running(self) -> subprocess.Popen[bytes]:
        """The service, started in this interpreter if there is none. The lock is held."""
        if self._service is not None and self._service.poll() is None:
            return self._service
        if not sys.platform.startswith("linux"):
            raise RunnerUnavailable("Tests run on Linux only so far; on Windows, start Bassline inside WSL2.")
        self._service = subprocess.Popen(
            [sys.executable, *self.program, *(["--never"] if self._never else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=child_process.environment(),
            start_new_session=True,  # Ctrl-C in a terminal is for the program, which then ends the service in order
        )
        self._reader = threading.Thread(target=self._read, args=(self._service,), name="runner", daemon=True)
        self._reader.start()
        return self._service

    def _read(self, service: subprocess.Popen[bytes]) -> None:
        assert service.stdout is not None
        assert service.stdin is not None
        for line in service.stdout:
            answer = answer_from_line(line)
            if isinstance(answer, TestFinished | ConsentNeeded | Observed):
                with self._lock:
                    self._open.pop(answer.id, None)
                    self._observations.discard(answer.id)
            elif isinstance(answer, Isolation):
                with self._lock:
                    self._probes.remove(service)
            self._on_message(answer)
        code = service.wait()
        service.stdout.close()
        try:
            service.stdin.close()
        except BrokenPipeError:
            pass
        with self._lock:
            left = [id for id, owner in self._open.items() if owner is service]
            for id in left:
                del self._open[id]
            why = (
                "The test runner was closed."
                if self._closed
                else f"The test runner stopped (exit status {code}); run the tests again."
            )
            observed = self._observations & set(left)
            self._observations -= observed
            probes, self._probes = self._probes.count(service), [p for p in self._probes if p is not service]
        for id in left:
            lost = Observed(id, (), why) if id in observed else TestFinished(id, Report(Verdict.INFRA, "split", why))
            self._on_message(lost)
        for _ in range(probes):
            self._on_message(Isolation(False, {}, why))


def run_one(solution: str, tests: str, *, consent: bool = False, same_process: bool = False) -> Report:
    """Runs ``tests`` on one candidate and waits. Where an agreement is missing, the report says for what."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client = RunnerClient(answers.put)
    try:
        client.test(RunTests("only", solution, tests, consent, same_process=same_process))
        while True:
            answer = answers.get()
            if isinstance(answer, TestFinished):
                return answer.report
            if isinstance(answer, ConsentNeeded):
                verdict = Verdict.NEEDS_IN_PROCESS if answer.kind == "same_process" else Verdict.INFRA
                return Report(verdict, "split", answer.sentence)
    finally:
        client.close()


def check_isolation() -> Isolation:
    """What holds on this machine; waits for the probe."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    client = RunnerClient(answers.put)
    try:
        client.probe()
        while not isinstance(answer := answers.get(), Isolation):
            pass
        return answer
    finally:
        client.close()
