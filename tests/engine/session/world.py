"""A world for a run's driver: an engine and a runner that answer when they are told to, and a clock that is moved."""

from dataclasses import dataclass, field

from engine.contract import (
    Add,
    CandidateFinished,
    Generate,
    Message,
    ModelChoice,
    Request,
    RunFinished,
    RunStarted,
    TextAdded,
)
from engine.runner.protocol import CancelTests, RunTests, TestFinished
from engine.runner.report import Report, TestResult
from engine.session.arms import FRESH, Budget, Model
from engine.session.driver import RunDriver
from engine.session.effects import Effect, FirstPass, TestPolicy
from engine.session.run import Run
from engine.session.search import Search

PASS = Report("pass", "split", tests=(TestResult("1", "passed"), TestResult("2", "passed")))
FAIL = Report("fail", "split", tests=(TestResult("1", "passed"), TestResult("2", "failed", "assert f() == 2, where 1")))
WORSE = Report("fail", "split", tests=(TestResult("1", "failed", "assert f(0) == 1"), TestResult("2", "failed", "no")))
SMALL = Model(ModelChoice("small"), "Small")
LARGE = Model(ModelChoice("large"), "Large", speed=2.0, load_s=3.0)


@dataclass
class World:
    """An engine that answers when it is told to, a runner that judges at once, and a clock that is moved."""

    budget: Budget = field(default_factory=Budget)
    ladder: tuple[Model, ...] = (SMALL,)
    arms: tuple[str, ...] = (FRESH,)
    now: float = 10.0
    past: Run | None = None  # that goes on
    request: Request = field(default_factory=lambda: Request("write f", 7))

    def __post_init__(self) -> None:
        self.search = Search(self.budget, self.ladder, arms=self.arms)
        self.run = self.past or Run("r", self.search.first(self.request), "assert f() == 2")
        search = None if self.past else self.search
        self.driver = RunDriver(self.run, TestPolicy, search=search, clock=lambda: self.now)
        self.due: list[int] = []  # candidates that the engine has yet to end
        self.last = 0  # the last number that the engine knows
        self.engine_runs = False
        self.sent: list[Message] = []
        self.tests: list[RunTests] = []
        self.told: list[FirstPass] = []
        self.perform(self.driver.go_on(self.search) if self.past else self.driver.begin())

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case RunTests():
                    self.tests.append(effect)
                case CancelTests():
                    self.tests = [test for test in self.tests if test.id != effect.id]
                case FirstPass():
                    self.told.append(effect)
                case _:
                    self.sent.append(effect)
                    self._engine_hears(effect)

    def _engine_hears(self, message: Message) -> None:
        if isinstance(message, Generate):
            assert not self.engine_runs
            self.engine_runs, self.due = True, list(message.request.numbers)
            self.last = self.due[-1]
            self.perform(self.driver.engine_event(RunStarted(self.run.name, 5, tuple(self.due), 7)))
        elif isinstance(message, Add) and self.engine_runs:
            self.due += range(self.last + 1, self.last + 1 + message.count)
            self.last += message.count

    def write(self, seconds: float = 0.5, code: str = "") -> None:
        """The engine ends the next candidate, and its run when there is none left."""
        number = self.due.pop(0)
        self.now += seconds
        text = code or f"```python\ndef f(): return {number + 10}\n```"
        self.perform(self.driver.engine_event(TextAdded(self.run.name, number, text, 3, 0.1)))
        done = CandidateFinished(self.run.name, number, "done", "stop", text, 5, 0, 0, -0.1, 0.5)
        self.perform(self.driver.engine_event(done))

    def end_leg(self, outcome: str = "finished") -> None:
        self.engine_runs, self.due = False, []
        self.perform(self.driver.engine_event(RunFinished(self.run.name, outcome)))

    def judge(self, report: Report = FAIL) -> None:
        test = self.tests.pop(0)
        self.perform(self.driver.runner_answer(TestFinished(test.id, report)))

    def play(self, report: Report = FAIL, most: int = 500) -> None:
        """All that comes by itself, every verdict the same."""
        for _ in range(most):
            if self.tests:
                self.judge(report)
            elif self.due:
                self.write()
            elif self.engine_runs:
                self.end_leg("stopped" if self.run.state == "stopping" else "finished")
            else:
                break
        assert self.driver.over

    @property
    def asked(self) -> list[Generate]:
        return [message for message in self.sent if isinstance(message, Generate)]
