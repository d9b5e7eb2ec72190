"""Models for benchmarks: loaded without progress output, and called without an engine around them."""

from collections.abc import Callable
from pathlib import Path

from transformers import AutoTokenizer

from engine.contract import Request
from engine.models import sources
from engine.models.chat import PromptEncoder
from engine.models.errors import ModelNotFound
from engine.models.loader import LoadedModel, load
from engine.models.names import resolve
from engine.models.preparation import prepare
from engine.sampler.acceptance import Coupled
from engine.sampler.cost_table import CostTable
from engine.sampler.decoder import Decoder
from engine.sampler.drafters import Drafter
from engine.sampler.drafters.suffix import SuffixDrafter
from engine.sampler.policies import Policy
from engine.sampler.policies.fixed import Fixed
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.stopping import Limits

MEASURED = "qwen2.5-coder-0.5b"  # what a script measures unless told otherwise, whatever the default model is here


def loaded(name: str, precision: str = "auto", device: str = "auto") -> LoadedModel:
    """See ``engine.models.loader.load``; what is missing is fetched first."""
    return load(name, precision=precision, device=device, progress=lambda _: None, cancelled=lambda: False)


def encoder(name: str) -> Callable[[Request], list[int]]:
    """What turns a request into the model's token ids, without its weights."""
    folder = prepare(name, device="cpu", progress=lambda _: None, cancelled=lambda: False).folder
    return PromptEncoder(AutoTokenizer.from_pretrained(folder, local_files_only=True)).ids


def gguf_of(name: str) -> Path:
    """The GGUF file that a model is made of, fetched if it is missing. Raises ModelNotFound where there is none."""
    named = resolve(name, device="cpu")
    if named.entry is not None and named.entry.file is not None:
        file = named.entry.file
        return sources.fetch(file, offline=False, progress=lambda _: None, cancelled=lambda: False)
    if named.path is not None and named.path.is_file():
        return named.path
    raise ModelNotFound(f"{name} does not come from a GGUF file; name one with --gguf.")


def answers(
    model: LoadedModel,
    ragged: RaggedModel,
    request: Request,
    drafter: Drafter | None = None,
    policy: Policy | None = None,
) -> tuple[list[int], list[list[int]]]:
    """The prompt's ids, and those of every candidate to its end, by the coupled rule.

    Under that rule no draft changes a token; those that are taken where nothing else is asked for only save time.
    """
    prompt = model.encode(request)
    decoder = Decoder(ragged, drafter or SuffixDrafter(), policy or Fixed(2), Coupled(), CostTable({1: 1.0}))
    limits = Limits(model.eos_ids, request.sampling.max_tokens)
    rows = [Row(n, request.seed, prompt, limits, model.decode, request.sampling) for n in request.numbers]
    last = ragged.prefill(prompt, features=decoder.drafter.needs)
    assert last is not None
    decoder.drafter.begin(prompt, lambda done: True)
    decoder.join(rows, last)
    decoder.leave()
    while decoder.rows:
        decoder.step()
        decoder.leave()
    return prompt, [row.tokens for row in rows]
