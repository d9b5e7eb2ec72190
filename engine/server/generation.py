"""One run on a server: from a request to its one RunFinished."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace

from engine.contract import (
    Add,
    BasslineError,
    Cancel,
    CandidateFinished,
    Emit,
    Generate,
    Metrics,
    RunFinished,
    RunOutcome,
    RunStarted,
    Sampling,
    StepDone,
    StopReason,
    TextAdded,
    Turn,
)
from engine.contract.errors import by_candidate
from engine.contract.states import LEFT_BY, STATE_AFTER
from engine.server.candidate import ServerCandidate
from engine.server.dialect import body_of, way_of
from engine.server.faults import BrokeOff, RequestRefused, ServerFailing, ServerFault
from engine.server.feature_check import FeatureCheck, ProbeRequest
from engine.server.mailbox import AsyncMailbox
from engine.server.stream import Piece

AS_SERVED = "as served"  # precision, drafter and the rest are the server's own matter
_COUNT_S = 2.0  # of silence, once every text has ended: how long to wait for the server's count of tokens


class ServerRun:
    """Asks for one request's candidates and tells everything as events.

    Candidates of one sampling and conversation come from one request where the server supports ``n``, else each from a
    request of its own, all at the same time (``width`` limits how many). A candidate that is stopped has its connection
    closed as soon as no other candidate hangs on it.
    """

    def __init__(
        self,
        message: Generate,
        question: ProbeRequest,
        features: FeatureCheck,
        post: AsyncMailbox,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.run, self.request, self.emit = message.run, message.request, emit
        self._client, self._model, self._dialect = question.client, question.model, question.dialect
        self._features, self._post = features, post
        self._clock, self._start = clock, clock()
        self._candidates: dict[int, ServerCandidate] = {}
        self._asks: dict[int, asyncio.Task[None]] = {}  # by candidate; several may share one
        self._faults: dict[int, BasslineError] = {}
        self._group: asyncio.TaskGroup | None = None
        self._early: list[Add] = []  # that came before the first candidates were asked for
        width = self.request.width or self.request.candidates
        self._at_a_time = width if self._dialect.n else 1
        self._turns = asyncio.Semaphore(1 if self._dialect.n and self.request.width else width)
        self._first_token_at: float | None = None
        self._chunks = self._widest = 0

    async def execute(self) -> None:
        """Never raises: whatever happens, finished candidates are told and RunFinished comes last."""
        outcome, reason, details = RunOutcome.FINISHED, "", ""
        work = asyncio.ensure_future(self._work())
        listening = asyncio.ensure_future(
            self._post.listen(self.run, lambda message: self._take_message(message, work))
        )
        try:
            async with asyncio.timeout(self.request.time_budget_s):
                await work
        except asyncio.CancelledError:
            outcome = RunOutcome.STOPPED
        except TimeoutError:
            outcome = RunOutcome.BUDGET
        except BasslineError as error:
            outcome, reason = RunOutcome.REFUSED, str(error)
        except Exception as error:
            first = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            outcome, details = RunOutcome.FAILED, traceback.format_exc()
            reason = f"Talking to the server failed: {type(first).__name__}. The details are worth a report."
        finally:
            listening.cancel()
        for candidate in self._candidates.values():
            self._end(candidate, LEFT_BY.get(outcome, StopReason.ERROR))
        if outcome == RunOutcome.FINISHED and self._faults:
            outcome, reason, details = self._trouble()
        self.emit(RunFinished(self.run, outcome, self._metrics() if self._candidates else None, reason, details))

    async def _work(self) -> None:
        await self._features.check(self.request)
        self.emit(RunStarted(self.run, 0, tuple(self.request.numbers), self.request.seed))
        async with asyncio.TaskGroup() as self._group:
            self._ask_for(self.request.numbers)
            for message in self._early:
                self._add(message)

    def _take_message(self, message: Cancel | Add, work: "asyncio.Future[None]") -> None:
        if isinstance(message, Add):
            if self._group is None:
                self._early.append(message)
            elif not work.done():
                with contextlib.suppress(RuntimeError):  # the last candidate has just ended, and the run with it
                    self._add(message)
        elif message.candidate is None:
            work.cancel()
        elif message.candidate in self._candidates:
            self._end(self._candidates[message.candidate], StopReason.CANCELLED)
            self._hang_up(self._asks[message.candidate])

    def _add(self, message: Add) -> None:
        """Raises RuntimeError when nothing can be asked any more; none of them was then."""
        first = max(self._candidates) + 1
        numbers = range(first, first + message.count)
        openings = dict.fromkeys(numbers, message.opening) if message.opening else {}
        self.request = replace(self.request, openings=self.request.openings | openings)
        self._ask_for(numbers)

    def _hang_up(self, ask: "asyncio.Task[None]") -> None:
        """Close the connection when nobody listens to it any more."""
        if all(self._candidates[n].stop_reason for n, other in self._asks.items() if other is ask):
            ask.cancel()

    # Asking.

    def _ask_for(self, numbers: Iterable[int]) -> None:
        """A candidate is one of the run only once it is asked for. Raises RuntimeError."""
        alike: dict[tuple[Sampling, tuple[Turn, ...]], list[int]] = {}
        candidates: dict[int, ServerCandidate] = {}
        for number in numbers:
            sampling = self.request.sampling_of(number)
            before = "" if self.request.mode == "chat" else self.request.prompt
            candidates[number] = ServerCandidate(number, sampling, before)
            alike.setdefault((sampling, self.request.openings.get(number, ())), []).append(number)
        for group in alike.values():
            for at in range(0, len(group), self._at_a_time):
                self._open(group[at : at + self._at_a_time])
        self._candidates |= candidates

    def _open(self, numbers: list[int]) -> None:
        assert self._group is not None
        ask = self._ask(numbers)
        try:
            task = self._group.create_task(ask)
        except RuntimeError:
            ask.close()
            raise
        self._asks.update(dict.fromkeys(numbers, task))

    async def _ask(self, numbers: list[int]) -> None:
        """One request, and what comes of it. Only a fault in our own code gets out of here."""
        async with self._turns:
            candidates = [self._candidates[n] for n in numbers if not self._candidates[n].stop_reason]
            if not candidates:
                return
            self._widest = max(self._widest, sum(not c.stop_reason for c in self._candidates.values()))
            try:
                await self._agree(candidates)
            except (RequestRefused, ServerFailing) as fault:
                if len(candidates) == 1 or any(candidate.has_begun for candidate in candidates):
                    self._fail(candidates, fault)
            except BasslineError as fault:
                self._fail(candidates, fault)
        if len(candidates) > 1:
            for candidate in candidates:
                if not candidate.stop_reason:  # this time the server took no ``n``, or none so large
                    self._open([candidate.number])

    async def _agree(self, candidates: list[ServerCandidate]) -> None:
        """Listen, and where the server refuses something that the request can do without, ask once more without it."""
        while True:
            used = self._dialect
            try:
                return await self._listen(candidates)
            except (RequestRefused, ServerFailing) as fault:
                milder = used.milder(fault.reply)
                if milder is None or any(candidate.has_begun for candidate in candidates):
                    raise
                if self._dialect == used:  # else another request has learned something meanwhile
                    self._dialect = milder

    async def _listen(self, candidates: list[ServerCandidate]) -> None:
        """Read one answer to its end. Of several candidates, those that it never mentions stay open."""
        numbers = [candidate.number for candidate in candidates]
        body = body_of(self.request.asked_of(numbers[0]), numbers, self._model, self._dialect)
        alone, whole, tokens = len(candidates) == 1, False, None
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(None) as timeouts,
                contextlib.aclosing(self._client.stream(way_of(self.request), body)) as chunks,
            ):
                async for chunk in chunks:
                    whole, tokens = whole or chunk.last, tokens if chunk.tokens is None else chunk.tokens
                    for piece in chunk.pieces:
                        if piece.index < len(candidates):
                            self._take(candidates[piece.index], piece, wait=alone)
                    self._tell_step()
                    going = [c for c in candidates if not c.finish or c.goes_on or not self._dialect.marks_end]
                    if going and all(candidate.stop_reason for candidate in going):
                        break
                    last = asyncio.get_running_loop().time() + _COUNT_S
                    timeouts.reschedule(None if going else last)
        if alone and tokens and not candidates[0].stop_reason:
            candidates[0].tokens = tokens
        self._settle(candidates, whole)

    def _settle(self, candidates: list[ServerCandidate], whole: bool) -> None:
        """An answer is over, ``whole`` if the server said so, else by the end of its connection. Raises BrokeOff."""
        alone = len(candidates) == 1
        for candidate in candidates:
            if candidate.finish or (whole and not self._dialect.gives_reason and (candidate.has_begun or alone)):
                self._end(candidate, StopReason.STOP)
        left = [candidate for candidate in candidates if not candidate.stop_reason]
        if left and (alone or any(c.has_begun for c in left) or not any(c.has_begun for c in candidates)):
            host = self._client.server.host
            if whole:
                raise BrokeOff(f"{host} interrupted the answer; if it serves one at a time, set the width to 1.")
            raise BrokeOff(f"{host} ended the answer early; the text so far is kept.")

    # Telling.

    def _take(self, candidate: ServerCandidate, piece: Piece, wait: bool) -> None:
        """``wait``: the end of the whole answer is near, and brings the count of tokens, or proves that it was one."""
        if candidate.stop_reason:
            return
        text = candidate.add(piece)
        if piece.tokens:
            self._first_token_at = self._first_token_at or self._now()
        if piece.tokens or text:
            self.emit(TextAdded(self.run, candidate.number, text, candidate.tokens, self._now()))
        if candidate.stop_reason:
            self._tell_end(candidate)
        elif candidate.finish and self._dialect.marks_end and not (wait or candidate.goes_on):
            self._end(candidate, StopReason.STOP)

    def _end(self, candidate: ServerCandidate, reason: StopReason) -> None:
        """The server's own word on the end counts for more than ``reason``."""
        if candidate.stop_reason:
            return
        reason = candidate.finish or reason
        if candidate.finish == StopReason.ERROR and candidate.number not in self._faults:
            self._faults[candidate.number] = ServerFault(f"{self._client.server.host} {candidate.why_it_failed}.")
        if rest := candidate.end(reason):
            self.emit(TextAdded(self.run, candidate.number, rest, candidate.tokens, self._now()))
        self._tell_end(candidate)

    def _fail(self, candidates: list[ServerCandidate], fault: BasslineError) -> None:
        for candidate in candidates:
            if not candidate.stop_reason:
                if not candidate.finish:
                    self._faults[candidate.number] = fault
                self._end(candidate, StopReason.ERROR)

    def _tell_end(self, candidate: ServerCandidate) -> None:
        candidate.finished_s = self._now()
        self.emit(
            CandidateFinished(
                run=self.run,
                candidate=candidate.number,
                state=STATE_AFTER[candidate.stop_reason],
                stop_reason=candidate.stop_reason,
                text=candidate.text,
                tokens=candidate.tokens,
                proposed=0,
                accepted=0,
                mean_logprob=candidate.mean_log_prob,
                at_s=candidate.finished_s,
            )
        )

    def _tell_step(self) -> None:
        """A chunk stands for a step: nobody outside the server can count its own."""
        self._chunks += 1
        candidates = self._candidates.values()
        tokens, active = sum(c.tokens for c in candidates), sum(not c.stop_reason for c in candidates)
        self.emit(StepDone(self.run, self._chunks, tokens, 0, 0, active, self._now()))

    def _trouble(self) -> tuple[RunOutcome, str, str]:
        """Outcome, reason and details when candidates failed: the run has, if all of them did."""
        shown = by_candidate(self._faults)
        if len(self._faults) == len(self._candidates):
            return RunOutcome.FAILED, str(self._faults[min(self._faults)]), "\n".join(shown)
        return RunOutcome.FINISHED, shown[0], "\n".join(shown)

    def _now(self) -> float:
        return self._clock() - self._start

    def _metrics(self) -> Metrics:
        total, begun = self._now(), self._first_token_at or 0.0
        ended = sorted(self._candidates.values(), key=lambda candidate: candidate.finished_s)
        tokens = sum(candidate.tokens for candidate in ended)
        per_token = [1e3 * (c.finished_s - begun) / c.tokens for c in ended if c.tokens]
        return Metrics(
            time_to_first_token_s=self._first_token_at,
            time_to_first_finished_s=ended[0].finished_s,
            total_s=total,
            tokens_per_second=tokens / (total - begun) if tokens else None,
            ms_per_token_first=per_token[0] if per_token else None,
            ms_per_token_last=per_token[-1] if per_token else None,
            ms_per_token_mean=sum(per_token) / len(per_token) if per_token else None,
            acceptance_rate=None,
            steps=self._chunks,
            device=self._client.server.host,
            precision=AS_SERVED,
            drafter=AS_SERVED,
            policy=AS_SERVED,
            acceptance=AS_SERVED,
            width=self._widest,
        )
