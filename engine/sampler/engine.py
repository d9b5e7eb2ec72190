"""The sampler as an engine: owns the models, answers messages, lives on one thread."""

import gc
import logging
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from typing import Protocol

import torch

from engine.backends.memory import is_out_of_memory, release_cached_memory
from engine.backends.registry import why_on_cpu
from engine.contract import (
    BadRequest,
    BasslineError,
    Close,
    Closed,
    Emit,
    Generate,
    Load,
    LoadCancelled,
    LoadFailed,
    Loading,
    Mailbox,
    Message,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    RunOutcome,
)
from engine.models import notes
from engine.models.loader import LoadedModel, load
from engine.models.names import resolve
from engine.models.pairing import check_pair
from engine.sampler.acceptance import Coupled
from engine.sampler.cost_table import measured_again, measured_once
from engine.sampler.decoder import Decoder
from engine.sampler.device_model import DeviceModel
from engine.sampler.device_path import open_model
from engine.sampler.disturbance import Disturbance, glance, is_busy
from engine.sampler.drafters import open_drafter
from engine.sampler.drafters.draft_model import drafter_over
from engine.sampler.drafters.ngrams import table_for
from engine.sampler.drafters.speculator import speculator_for
from engine.sampler.faults import kind_of, sentence_for
from engine.sampler.generation import SamplerRun
from engine.sampler.names import RULES
from engine.sampler.pair import LoadedPair
from engine.sampler.policies import open_policy
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.self_check import check_ragged, longest_context, refuse_by_name
from engine.session import paths
from kernels.attention import native

_log = logging.getLogger(__name__)
IDLE_S = 20.0  # that nobody asks for anything, before the machine is measured again
TRIES = 5  # that may come to nothing: a machine that is always busy is let alone


class _Asked(Exception):
    """A message came while the machine was measured."""


class Loader(Protocol):
    """See ``engine.models.loader.load``."""

    def __call__(
        self,
        name: str,
        *,
        precision: str,
        device: str,
        offline: bool,
        ignore_fit: bool,
        progress: Callable[[Loading], None],
        cancelled: Callable[[], bool],
    ) -> LoadedModel: ...


class Resolver(Protocol):
    """See ``engine.models.names.resolve``: whether a name means a model here, known without loading anything."""

    def __call__(self, name: str, *, precision: str, device: str) -> object: ...


def exact_cache_dtype(model: LoadedModel) -> torch.dtype | None:
    """What makes a token's logits the same to the bit, whatever else is in the batch, for int8: None or float64.

    Row-scaled int8 products of a row do not depend on its neighbours, norms and activations go by element. Neither
    does compiled attention depend on them, but torch's rounds differently for each batch shape, and one such last bit
    tips int8 roundings all through the layers behind it. In float64 those differences are gone before the next
    rounding to float32.
    """
    if model.precision != "int8" or model.device.type != "cpu":
        return None
    config = model.module.config.get_text_config()
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return torch.float64 if native.why_not(size, size) else None


class SamplerEngine:
    """See ``engine.contract.Engine``."""

    def __init__(self, loader: Loader = load, resolver: Resolver = resolve):
        self._loader, self._resolve = loader, resolver
        self._mailbox = Mailbox()
        self._pair: LoadedPair | None = None
        self._cancelled = False

    def submit(self, message: Message) -> None:
        self._mailbox.put(message)

    def run(self, emit: Emit) -> None:
        while not isinstance(message := self._next(), Close):
            if isinstance(message, Load):
                self._load(message.choice, emit)
            else:
                self._generate(message, emit)
        self._pair = None
        gc.unfreeze()
        emit(Closed())

    def _next(self) -> Load | Generate | Close:
        """The next message. A table of costs that is in doubt is measured again while nobody asks for anything."""
        for _ in range(TRIES):
            pair = self._pair
            # What is captured on a GPU lies in memory that a prompt set aside would have to share.
            if pair is None or not pair.costs.is_doubtful or pair.target.device.type != "cpu":
                break
            if self._mailbox.arrives(IDLE_S):
                break
            if not is_busy(glance()):
                self._measure_again(pair)
        return self._mailbox.next()

    def _measure_again(self, pair: LoadedPair) -> None:
        costs = pair.costs
        if costs.path is None:
            return
        with pair.ragged.set_aside(), suppress(_Asked):
            pair.costs = measured_again(pair.ragged, costs, pair.target.context, costs.path, self._stop_if_asked)

    def _stop_if_asked(self) -> None:
        if self._mailbox.arrives(0):
            raise _Asked

    def _load(self, choice: ModelChoice, emit: Emit) -> None:
        """A name that means nothing leaves the loaded model as it is; any other failure leaves none."""
        self._cancelled = False
        try:
            for name in filter(None, (choice.model, choice.draft)):
                self._resolve(name, precision=choice.precision, device=choice.device)
            self._unload()  # two targets at once may not fit
            self._pair = pair = self._open_pair(choice, emit)
        except LoadCancelled as error:
            emit(LoadFailed(str(error), cancelled=True))
        except BasslineError as error:
            emit(LoadFailed(str(error), kind=kind_of(error)))
        except Exception as error:
            emit(LoadFailed(sentence_for(error, "Loading the model"), traceback.format_exc(), kind=kind_of(error)))
        else:
            gc.freeze()  # what a model is made of stays; looking at it again would stop the window, too, for 0.1 s
            target, draft = pair.target, pair.draft.name if pair.draft else ""
            emit(Ready(target.name, str(target.device), target.precision, pair.context, draft, pair.note))

    def _unload(self) -> None:
        self._pair = None
        gc.unfreeze()
        release_cached_memory()  # what is planned against is what the driver calls free

    def _open_pair(self, choice: ModelChoice, emit: Emit) -> LoadedPair:
        target = self._open(choice.model, choice, emit)
        refuse_by_name(target.module, target.name)
        emit(Loading("check", unit="steps"))
        ragged = self._open_door(target, target.vocabulary, emit)
        emit(Loading("warm-up", unit="steps"))
        costs = measured_once(
            ragged, target.name, target.precision, target.context, paths.data() / "costs", self._stop_if_cancelled
        )
        context = longest_context(target.module, target.context)
        fallen = why_on_cpu() if (choice.device, target.device.type) == ("auto", "cpu") else ""
        note = " ".join(filter(None, (fallen, ragged.note)))
        pair = LoadedPair(
            target, ragged, context, costs, table_for(target.tokenizer), speculator_for(target), note=note
        )
        if choice.draft:
            try:
                self._add_draft(pair, self._open(choice.draft, choice, emit), emit)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                # The target alone gives the same text; the user is told why it comes more slowly.
                why = error if isinstance(error, BasslineError) else sentence_for(error, "loading it")
                pair.note = " ".join(filter(None, (pair.note, f"Running without draft model: {why}")))
        return pair

    def _open_door(self, model: LoadedModel, vocabulary: int, emit: Emit, *, is_draft: bool = False) -> RaggedModel:
        """The fastest way to run it here, tried and checked; what it has to do without is kept for the doctor."""

        def progress(done: int, total: int) -> None:
            self._stop_if_cancelled()
            emit(Loading("kernels", done, total, "steps"))

        ragged = open_model(
            model.module,
            vocabulary,
            precision=model.precision,
            check=lambda door: check_ragged(door, model.name, model.precision),
            is_draft=is_draft,
            cache_dtype=exact_cache_dtype(model),
            progress=progress,
        )
        notes.keep(model.name, ragged.note)
        return ragged

    def _add_draft(self, pair: LoadedPair, draft: LoadedModel, emit: Emit) -> None:
        check_pair(pair.target, draft)
        refuse_by_name(draft.module, draft.name)
        # Ids that the target does not have are never drafted.
        vocabulary = min(pair.target.vocabulary, draft.vocabulary)
        ragged_draft = self._open_door(draft, vocabulary, emit, is_draft=True)
        if isinstance(ragged_draft, DeviceModel):  # its loop, too, is captured now
            drafter_over(ragged_draft, Coupled()).reserve(*astuple(ragged_draft.cache.room))
        pair.draft, pair.ragged_draft = draft, ragged_draft
        if ragged_draft.note:
            pair.note = " ".join(filter(None, (pair.note, f"Draft model: {ragged_draft.note}")))
        pair.context = min(pair.context, longest_context(draft.module, draft.context))

    def _open(self, name: str, choice: ModelChoice, emit: Emit) -> LoadedModel:
        return self._loader(
            name,
            precision=choice.precision,
            device=choice.device,
            offline=choice.offline,
            ignore_fit=choice.ignore_fit,
            progress=emit,
            cancelled=self._load_cancelled,
        )

    def _stop_if_cancelled(self) -> None:
        if self._load_cancelled():
            raise LoadCancelled("Loading was stopped.")

    def _load_cancelled(self) -> bool:
        self._cancelled = self._cancelled or bool(self._mailbox.during(""))
        return self._cancelled

    def _generate(self, message: Generate, emit: Emit) -> None:
        try:
            if self._pair is None:
                raise BadRequest("No model is loaded; load one first.")
            decoder = self._open_decoder(self._pair, message.request)
        except BasslineError as error:
            emit(RunFinished(message.run, RunOutcome.REFUSED, reason=str(error)))
            return
        pair, watch = self._pair, Disturbance()
        known, note = pair.costs.lessons, pair.ragged.note
        outcome = SamplerRun(message, pair.target, pair.context, decoder, self._mailbox, emit).execute()
        if is_busy(watch.share()):
            pair.costs.lessons = known  # such steps teach about their own moment, not about the next
        else:
            pair.costs.keep()
        if pair.ragged.note != note:  # graphs of a larger room could not be captured
            notes.keep(pair.target.name, pair.ragged.note)
        for model in filter(None, (pair.ragged, pair.ragged_draft)):
            model.clear() if outcome == RunOutcome.FAILED else model.forget_rows()

    def _open_decoder(self, pair: LoadedPair, request: Request) -> Decoder:
        names = request.speculation
        rule = RULES.find(names.acceptance)[0]()
        drafter = open_drafter(names.drafter, pair, request, rule)
        policy = open_policy(names.policy, pair.costs, drafter)
        _log.info("drafter %s, policy %s, rule %s", drafter.name, policy.name, rule.name)
        return Decoder(pair.ragged, drafter, policy, rule, pair.costs)
