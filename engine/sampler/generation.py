"""One run on the engine's thread: from a request to its one RunFinished."""

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from engine.backends.memory import is_out_of_memory, release_cached_memory
from engine.contract import (
    Add,
    BasslineError,
    CandidateFinished,
    Emit,
    Generate,
    Mailbox,
    Metrics,
    PromptProgress,
    RunFinished,
    RunOutcome,
    RunStarted,
    StepDone,
    StopReason,
    TextAdded,
)
from engine.contract.errors import by_candidate
from engine.contract.states import LEFT_BY, STATE_AFTER
from engine.models.errors import OutOfMemory
from engine.models.loader import LoadedModel
from engine.sampler.admission import Admission
from engine.sampler.decoder import Decoder
from engine.sampler.faults import kind_of, sentence_for
from engine.sampler.forward_pass import Pass
from engine.sampler.metrics import StepLog, Times, run_metrics
from engine.sampler.prompts import RunPrompts, SharedPrompt
from engine.sampler.row import Row
from engine.sampler.stopping import Limits
from engine.sampler.width import Widths, choose_widths
from engine.selection.thoughts import left_open

_log = logging.getLogger(__name__)

_MARK_TOKENS = 12  # the mark of a thought and the line end behind it


class SamplerRun:
    """Decodes one request with a decoder made for it, and tells everything as events."""

    def __init__(
        self,
        message: Generate,
        model: LoadedModel,
        context: int,
        decoder: Decoder,
        mailbox: Mailbox,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.run, self.request = message.run, message.request
        self.model, self.context, self.decoder, self.mailbox, self.emit = model, context, decoder, mailbox, emit
        self._clock, self._start = clock, clock()
        self._decode_start: float | None = None
        self._first_token_at: float | None = None
        self._rows: dict[int, Row] = {}  # every candidate that was started, by number
        self._shown: dict[int, int] = {}  # characters of its text that were told
        self._finished_at: dict[int, float] = {}
        self._log = StepLog()
        self._drafted = 0  # in the last step
        self._stopped = self._halved = False
        self._longest = 0  # tokens that a candidate may have behind the shared prompt
        self._last_number = self.request.numbers[-1]
        self._read_before = decoder.target.tokens_read
        self._prompt: Sequence[int] = ()  # that all rows share at the moment
        self._admission = Admission((), Widths(1, 1))

    def execute(self) -> RunOutcome:
        """Never raises: whatever happens, finished candidates are told and RunFinished comes last. Its outcome."""
        try:
            outcome, kind = self._decode(), ""
            reason, details = self._reported_refusals(outcome)
        except BasslineError as error:
            outcome, reason, details = RunOutcome.FAILED if self._rows else RunOutcome.REFUSED, str(error), ""
            kind = kind_of(error)
        except Exception as error:
            outcome, reason, details = RunOutcome.FAILED, sentence_for(error, "Generating"), traceback.format_exc()
            kind = kind_of(error)
        stop_reason = LEFT_BY.get(outcome, StopReason.ERROR)
        for row in self._rows.values():
            if not row.stop_reason:
                # After a failure the row's own tools may be what failed: nothing more is asked of them.
                row.end(stop_reason) if outcome != RunOutcome.FAILED else row.abandon(stop_reason)
            self._tell(row)
        self.emit(RunFinished(self.run, outcome, self._metrics(), reason, details, kind))
        return outcome

    def _reported_refusals(self, outcome: RunOutcome) -> tuple[str, str]:
        """Reason and details of a run that went well, but for candidates that could not be asked."""
        shown = by_candidate(self._prompts.refused) if outcome != RunOutcome.STOPPED else []
        return (shown[0], "\n".join(shown)) if shown else ("", "")

    def _decode(self) -> RunOutcome:
        self._prompts = RunPrompts(self.request, self.model.encode, self.context)
        self.emit(RunStarted(self.run, len(self._prompts.prompt), tuple(self.request.numbers), self.request.seed))
        self._end_refused()
        while (shared := self._prompts.next()) is not None:
            if end := self._decode_behind(shared):
                return end
        return RunOutcome.FINISHED

    def _decode_behind(self, shared: SharedPrompt) -> RunOutcome:
        """Read a prompt and decode all that share it; why the run must end before the last of them has, or NONE."""
        self._prompt = prompt = shared.tokens
        self.decoder.costs.context = len(prompt)
        self._admission = Admission(shared.candidates, self._widths(len(shared.candidates)), self._admission.most)
        self._halved = False
        self._longest = max(map(self._most_behind, shared.candidates))
        self._reserve()
        target, drafter = self.decoder.target, self.decoder.drafter
        last = target.prefill(prompt, lambda done: self._prompt_read(done, len(prompt)), drafter.needs)
        if last is None or not drafter.begin(prompt, lambda done: not self._must_end()):
            return self._must_end()
        self._decode_start = self._now() if self._decode_start is None else self._decode_start
        while self._admission.waiting or self.decoder.rows:
            whole = True
            try:
                whole = self._advance(last)
            except Exception as error:
                self._halve(error)
            rows = self.decoder.rows
            self.decoder.leave()
            self._launch_ahead()
            self._tell_step(rows)
            end = self._must_end()
            self.decoder.leave()  # those that were cancelled
            if end and (end == RunOutcome.STOPPED or not whole or self._is_left):
                return end
        return RunOutcome.NONE

    @property
    def _is_left(self) -> bool:
        """Some candidate is being decoded, or has yet to be."""
        return bool(self._admission.waiting or self.decoder.rows or self._prompts.waiting)

    def _reserve(self) -> None:
        """Make room for all that is to come, at once: for as many rows at a time as the memory turns out to hold."""
        released, prompt_length = False, len(self._prompt)
        while True:
            rows = self._admission.together
            try:
                return self.decoder.reserve(rows, self._longest, prompt_length)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if released and rows == 1:
                    raise OutOfMemory(self._too_much(1, prompt_length + self._longest)) from error
            if released:
                self._admission.narrow(rows // 2)
            self.decoder.release()  # the room of an earlier run may have been what was in the way
            release_cached_memory()
            released = True

    def _too_much(self, rows: int, tokens: int) -> str:
        return (
            f"{rows} candidate{'s' * (rows > 1)} at a time with up to {tokens:,} tokens each did not fit into the "
            f"memory of {self.model.device}; take fewer candidates, fewer tokens or a smaller model."
        )

    def _advance(self, last: Pass) -> bool:
        """Let in who may join, behind the prompt's ``last`` token, or else decode one step.

        False if the run must end before those who were to join had read what they begin with.
        """
        self._drafted = 0
        if joining := self._admission.admit(self.decoder.rows):
            rows = [self._rows.get(number) or self._new_row(number) for number in joining]
            _log.info("%s: candidates %s join; %d wait", self.run, list(joining), len(self._admission.waiting))
            if not self.decoder.join(rows, last, lambda: not self._must_end()):
                return False
            self._first_token_at = self._first_token_at or self._now()
        else:
            record = self.decoder.step()
            self._log.add(record)
            self._drafted = record.drafted
        return True

    def _launch_ahead(self) -> None:
        """Where the device works by itself, let it begin the next step while the host tells the last one.

        What goes wrong here goes wrong again when that step is taken, and is dealt with there.
        """
        rows = self.decoder.rows
        if rows and self.decoder.target.is_asynchronous and not self._admission.would_admit(rows):
            with suppress(Exception):
                self.decoder.launch()

    def _halve(self, error: Exception) -> None:
        """Out of memory: once behind each prompt, go on with half as many rows at a time; the others go on later."""
        waiting = self._admission.waiting
        rows = [row for row in self._rows.values() if not row.stop_reason and row.candidate not in waiting]
        if not is_out_of_memory(error):
            raise error
        if self._halved or len(rows) < 2:
            raise OutOfMemory(self._too_much(len(rows), max(map(_length, rows)))) from error
        self._halved = True
        _log.warning("%s: out of memory with %d rows; going on with %d at a time", self.run, len(rows), len(rows) // 2)
        self.decoder.release()
        self._admission.send_back(rows, most=len(rows) // 2)
        release_cached_memory()
        self._reserve()

    def _widths(self, candidates: int) -> Widths:
        if self.request.width:
            return Widths(self.request.width, self.request.width)
        widths = choose_widths(self.decoder.costs, candidates, self.request.goal)
        _log.info("%s: %s for %d candidates, goal %s", self.run, widths, candidates, self.request.goal)
        return widths

    def _most_behind(self, number: int) -> int:
        """Tokens of a candidate behind the shared prompt, at most: its opening and its answer."""
        opening = len(self._prompts.tokens_of(number)) - len(self._prompt)
        return opening + Limits.of(self.request, number, frozenset(), self._prompts.room_of(number)).max_tokens

    def _new_row(self, number: int) -> Row:
        request, prompt = self.request, self._prompts.tokens_of(number)
        thinking = left_open(self.model.decode(prompt[-_MARK_TOKENS:]))
        limits = Limits.of(request, number, self.model.eos_ids, self._prompts.room_of(number), thinking)
        row = Row(number, request.seed, prompt, limits, self.model.decode, request.sampling_of(number))
        row.opening = prompt[len(self._prompt) :]
        self._rows[number] = row
        return row

    def _unasked_row(self, number: int) -> Row:
        """One that ends without a token."""
        return Row(number, self.request.seed, [], Limits(frozenset(), 1), self.model.decode)

    def _end_refused(self) -> None:
        """Candidates that could not be asked, for want of room behind their openings, fail alone."""
        for number in self._prompts.refused.keys() - self._rows.keys():
            _log.warning("%s: candidate %d: %s", self.run, number, self._prompts.refused[number])
            self._rows[number] = row = self._unasked_row(number)
            row.end(StopReason.ERROR)
            self._tell(row)

    def _prompt_read(self, done: int, total: int) -> bool:
        self.emit(PromptProgress(self.run, done, total))
        return not self._must_end()

    def _must_end(self) -> RunOutcome:
        """Look at the messages that came in and at the clock: STOPPED, BUDGET, or NONE to go on."""
        for message in self.mailbox.during(self.run):
            if isinstance(message, Add):
                self._add(message)
            elif message.candidate is None:
                self._stopped = True
            else:
                self._cancel(message.candidate)
        if self._stopped:
            return RunOutcome.STOPPED
        budget = self.request.time_budget_s
        return RunOutcome.BUDGET if budget is not None and self._now() >= budget else RunOutcome.NONE

    def _add(self, message: Add) -> None:
        first = self._last_number + 1
        self._last_number += message.count
        self._prompts.add(range(first, first + message.count), message.opening)
        self._end_refused()
        joining = self._prompts.take(self._prompt)
        self._longest = max([self._longest, *map(self._most_behind, joining)])
        together = len(self._admission.waiting) + len(self.decoder.rows) + len(joining)
        self._admission.add(joining, self._widths(max(1, together)))

    def _cancel(self, number: int) -> None:
        """Its row stays in the batch until nobody is in the middle of anything."""
        waited = self._admission.drop(number) or self._prompts.drop(number)
        if waited and number not in self._rows:  # it had not begun: it ends without a token
            self._rows[number] = self._unasked_row(number)
        row = self._rows.get(number)
        if row is not None and not row.stop_reason:
            row.end(StopReason.CANCELLED)
            self._tell(row)

    def _tell_step(self, rows: Sequence[Row]) -> None:
        """New text of the step's rows, those that ended, and the totals."""
        for row in rows:
            self._tell(row)
        every = self._rows.values()
        totals = (sum(len(r.tokens) for r in every), sum(r.proposed for r in every), sum(r.accepted for r in every))
        self.emit(StepDone(self.run, self._log.steps, *totals, len(self.decoder.rows), self._now(), self._drafted))

    def _tell(self, row: Row) -> None:
        number = row.candidate
        if number in self._finished_at:
            return
        shown, now = self._shown.get(number, 0), self._now()
        if len(row.text) > shown:
            self.emit(TextAdded(self.run, number, row.text[shown:], len(row.tokens), now))
            self._shown[number] = len(row.text)
        if row.stop_reason:
            self._finished_at[number] = now
            self.emit(
                CandidateFinished(
                    run=self.run,
                    candidate=number,
                    state=STATE_AFTER[row.stop_reason],
                    stop_reason=row.stop_reason,
                    text=row.text,
                    tokens=len(row.tokens),
                    proposed=row.proposed,
                    accepted=row.accepted,
                    mean_logprob=row.mean_log_prob,
                    at_s=now,
                )
            )

    def _now(self) -> float:
        return self._clock() - self._start

    def _metrics(self) -> Metrics:
        total = self._now()
        begun = total if self._decode_start is None else self._decode_start
        times = Times(begun, self._first_token_at, self._finished_at, total)
        read = self.decoder.target.tokens_read - self._read_before
        return run_metrics(
            self._log, times, self._rows, self.decoder, str(self.model.device), self.model.precision, read
        )


def _length(row: Row) -> int:
    return row.prompt_length + row.limits.max_tokens
