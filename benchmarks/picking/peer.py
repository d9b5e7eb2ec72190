"""llama.cpp as an engine: one answer after another, or all in one batch when only the answers matter."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.llama import PROMPT_ROOM, LlamaCpp
from benchmarks.target_models import loaded
from engine.contract import (
    BasslineError,
    CandidateFinished,
    Close,
    Closed,
    Emit,
    Generate,
    LoadFailed,
    Mailbox,
    Message,
    Ready,
    Request,
    RunFinished,
    RunOutcome,
    RunStarted,
    StopReason,
)
from engine.contract.request import Load
from engine.contract.states import STATE_AFTER
from engine.models.chat import PromptEncoder
from engine.models.loaded_model import LoadedModel


class SequentialLlamaCpp(LlamaCpp):
    """See ``peers/llama_in_turn.py``."""

    program = "benchmarks.peers.llama_in_turn"


class SequentialEngine:
    """See ``engine.contract.Engine``. ``goal`` *first*: one answer after another; *all*: together, in one batch.

    Of the model of ours only the tokenizer is used, so that both sides are given the same ids. Between answers a
    cancel takes effect. No log-probabilities.
    """

    def __init__(self, model: str, python: Path, gguf: Path, most: int, max_tokens: int):
        """Arguments as those of ``LlamaCpp``; ``most``: answers in one batch."""
        self._mailbox = Mailbox()
        self._model, self._python, self._gguf, self._most, self._max_tokens = model, python, gguf, most, max_tokens
        self._tokens: LoadedModel  # from Load on

    def submit(self, message: Message) -> None:
        self._mailbox.put(message)

    def run(self, emit: Emit) -> None:
        llama = None
        while not isinstance(message := self._mailbox.next(), Close):
            if isinstance(message, Load):
                try:
                    llama = self._load(emit)
                except (BasslineError, OSError) as error:
                    emit(LoadFailed(str(error)))
            else:
                assert llama is not None
                self._generate(message, llama, emit)
        if llama is not None:
            llama.close()
        emit(Closed())

    def _load(self, emit: Emit) -> LlamaCpp:
        # Its weights are dropped: they would only take memory.
        self._tokens = replace(loaded(self._model, device="cpu"), module=torch.nn.Identity())  # type: ignore[arg-type]
        self._encode = PromptEncoder(self._tokens.tokenizer).ids
        # One sequence more than answers at a time: the prompt's own.
        llama = SequentialLlamaCpp(self._encode, self._python, self._gguf, self._most + 1, self._max_tokens)
        about = f"llama-cpp-python {llama.about['version']}; {llama.about['features']}"
        emit(Ready(self._gguf.name, "cpu", "as in the file", PROMPT_ROOM + self._max_tokens, note=about))
        return llama

    def _generate(self, message: Generate, llama: LlamaCpp, emit: Emit) -> None:
        run, request = message.run, message.request
        start = time.monotonic()
        ids = self._encode(request)
        emit(RunStarted(run, len(ids), tuple(request.numbers), request.seed))
        outcome, reason = RunOutcome.FINISHED, ""
        try:
            for number, tokens in zip(request.numbers, _answers(llama, request, ids), strict=False):
                ended = len(tokens) < request.sampling.max_tokens or tokens[-1] in self._tokens.eos_ids
                why = StopReason.STOP if ended else StopReason.LENGTH
                text, at = self._tokens.decode(tokens), time.monotonic() - start
                emit(CandidateFinished(run, number, STATE_AFTER[why], why, text, len(tokens), 0, 0, None, at))
                if number != request.numbers[-1] and self._mailbox.during(run):
                    outcome = RunOutcome.STOPPED
                    break
        except BasslineError as error:
            outcome, reason = RunOutcome.FAILED, str(error)
        emit(RunFinished(run, outcome, reason=reason))


def _answers(llama: LlamaCpp, request: Request, ids: list[int]) -> Iterator[list[int]]:
    sampling = request.sampling
    asked = {"prompt": ids, "n": request.candidates, "seed": request.seed, "max_tokens": sampling.max_tokens}
    asked |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if request.goal == "all":
        yield from llama.ask(**asked, together=True)["tokens"]
        return
    llama.ask(**asked)
    for _ in range(request.candidates):
        yield llama.ask()["tokens"]
