"""One run on the engine's thread: from a request to its one RunFinished."""

import time
import traceback
from collections.abc import Callable, Sequence

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
    RunStarted,
    StepDone,
    TextAdded,
)
from engine.models.loader import LoadedModel
from engine.sampler.decoder import Decoder
from engine.sampler.faults import sentence_for
from engine.sampler.stopping import Limits, Row

STATES = {"stop": "done", "length": "cut", "budget": "cut", "cancelled": "stopped", "error": "failed"}


class PromptTooLong(BasslineError):
    """The prompt leaves no room for an answer."""


class Generation:
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
        self._steps = 0
        self._stopped = False
        self._waiting: list[int] = []  # candidates that have not joined yet

    def execute(self) -> None:
        """Never raises: whatever happens, finished candidates are told and RunFinished comes last."""
        try:
            outcome, reason, details = self._decode(), "", ""
        except BasslineError as error:
            outcome, reason, details = ("failed" if self._rows else "refused"), str(error), ""
        except Exception as error:
            outcome, reason, details = "failed", sentence_for(error, "Generating"), traceback.format_exc()
        stop_reason = {"stopped": "cancelled", "budget": "budget"}.get(outcome, "error")
        for row in self._rows.values():
            if not row.stop_reason:
                # After a failure the row's own tools may be what failed: nothing more is asked of them.
                row.end(stop_reason) if outcome != "failed" else row.abandon(stop_reason)
            self._tell(row)
        self.emit(RunFinished(self.run, outcome, self._metrics(), reason, details))

    def _decode(self) -> str:
        prompt = self.model.encode(self.request)
        room = self._room(len(prompt))
        self._waiting = list(self.request.numbers)
        self.emit(RunStarted(self.run, len(prompt), tuple(self._waiting), self.request.seed))
        target = self.decoder.target
        logits = target.prefill(prompt, lambda done: self._prompt_read(done, len(prompt)))
        if logits is None or not self.decoder.drafter.begin(prompt, lambda done: not self._must_end()):
            return self._must_end()
        self._decode_start = self._now()
        while self._waiting or self.decoder.rows:
            if self._waiting:
                joining, self._waiting = self._waiting, []
                self.decoder.join([self._new_row(number, prompt, room) for number in joining], logits)
                self._first_token_at = self._first_token_at or self._now()
            else:
                self.decoder.step()
                self._steps += 1
            self._tell_step()
            if (end := self._must_end()) and (end == "stopped" or self._waiting or self.decoder.rows):
                return end
        return "finished"

    def _room(self, prompt_length: int) -> int:
        """Tokens that may follow the prompt."""
        room = self.context - prompt_length
        if room < 1:
            raise PromptTooLong(
                f"The prompt has {prompt_length:,} tokens and the model reads at most {self.context:,}; "
                "shorten the prompt or choose a model with a longer context."
            )
        return room

    def _new_row(self, number: int, prompt: Sequence[int], room: int) -> Row:
        request = self.request
        limits = Limits.of(request, number, self.model.eos_ids, room)
        self._rows[number] = row = Row(
            number, request.seed, prompt, limits, self.model.decode, request.sampling_of(number)
        )
        return row

    def _prompt_read(self, done: int, total: int) -> bool:
        self.emit(PromptProgress(self.run, done, total))
        return not self._must_end()

    def _must_end(self) -> str:
        """Look at the messages that came in and at the clock: stopped, budget, or empty to go on."""
        for message in self.mailbox.during(self.run):
            if isinstance(message, Add):
                first = max([self.request.numbers[-1], *self._rows, *self._waiting]) + 1
                self._waiting += range(first, first + message.count)
            elif message.candidate is None:
                self._stopped = True
            else:
                self._cancel(message.candidate)
        if self._stopped:
            return "stopped"
        budget = self.request.time_budget_s
        return "budget" if budget is not None and self._now() >= budget else ""

    def _cancel(self, number: int) -> None:
        if number in self._waiting:  # it had not begun: it ends without a token
            self._waiting.remove(number)
            self._rows[number] = Row(number, self.request.seed, [], Limits(frozenset(), 1), self.model.decode)
        row = self._rows.get(number)
        if row is not None and not row.stop_reason:
            row.end("cancelled")
            self._tell(row)
            self.decoder.leave()

    def _tell_step(self) -> None:
        """New text of every row, those that ended, and the totals."""
        for row in self.decoder.rows:
            self._tell(row)
        self.decoder.leave()
        rows = self._rows.values()
        totals = (sum(len(r.tokens) for r in rows), sum(r.proposed for r in rows), sum(r.accepted for r in rows))
        self.emit(StepDone(self.run, self._steps, *totals, len(self.decoder.rows), self._now()))

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
                    state=STATES[row.stop_reason],
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
        total, decoder = self._now(), self.decoder
        begun = total if self._decode_start is None else self._decode_start
        rows = [self._rows[number] for number in self._finished_at]  # in the order in which they finished
        tokens, proposed = sum(len(row.tokens) for row in rows), sum(row.proposed for row in rows)
        per_token = [1e3 * (self._finished_at[row.candidate] - begun) / len(row.tokens) for row in rows if row.tokens]
        return Metrics(
            time_to_first_token_s=self._first_token_at,
            time_to_first_finished_s=min(self._finished_at.values(), default=None),
            total_s=total,
            tokens_per_second=tokens / (total - begun) if tokens else None,
            ms_per_token_first=per_token[0] if per_token else None,
            ms_per_token_last=per_token[-1] if per_token else None,
            ms_per_token_mean=sum(per_token) / len(per_token) if per_token else None,
            acceptance_rate=sum(row.accepted for row in rows) / proposed if proposed else None,
            steps=self._steps,
            device=str(self.model.device),
            precision=self.model.precision,
            drafter=decoder.drafter.name,
            policy=decoder.policy.name,
            acceptance=decoder.rule.name,
        )
