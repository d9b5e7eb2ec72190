"""Our sampler as the product uses it: on its own thread, driven by messages."""

import queue
import threading

from benchmarks.timing import Timing
from engine.contract import (
    BasslineError,
    Close,
    Closed,
    Event,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    RunOutcome,
    Sampling,
    Speculation,
)
from engine.sampler.engine import SamplerEngine

# What makes an engine let go of what a follow-up would go on from: the prompt's keys and values, and what was said.
# Otherwise the next to be timed would be given the prompt, and drafts of the last one's answers. It is bare text: the
# beginning that all chats have in common is to be read again as well.
FORGET = Request("-", 0, 1, mode="completion", sampling=Sampling(max_tokens=1), speculation=Speculation("suffix"))


class OurEngine:
    """Loads on construction; raises BasslineError when that fails."""

    def __init__(self, choice: ModelChoice):
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._engine = SamplerEngine()
        threading.Thread(target=self._engine.run, args=(self._events.put,), daemon=True).start()
        self._engine.submit(Load(choice))
        ready = self._until(Ready | LoadFailed)[-1]
        if isinstance(ready, LoadFailed):
            raise BasslineError(ready.reason)

    def run(self, request: Request) -> list[Event]:
        """All events of one run, RunFinished last. Raises BasslineError when it did not finish."""
        self._engine.submit(Generate("bench", request))
        events = self._until(RunFinished)
        finished = events[-1]
        assert isinstance(finished, RunFinished)
        if finished.outcome != RunOutcome.FINISHED:
            raise BasslineError(finished.reason or f"The run ended as {finished.outcome}.")
        return events

    def answer(self, request: Request) -> Timing:
        return Timing.of_run(self.run(request))

    def rest(self) -> None:
        self.run(FORGET)

    def close(self) -> None:
        self._engine.submit(Close())
        self._until(Closed)

    def _until(self, kind: object) -> list[Event]:
        events = [self._events.get()]
        while not isinstance(events[-1], kind):  # type: ignore[arg-type]
            events.append(self._events.get())
        return events
