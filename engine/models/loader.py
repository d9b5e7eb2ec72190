"""From a model's name to a model that is ready."""

import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedTokenizerFast

from engine.backends.registry import device_of
from engine.contract import LoadCancelled, Loading
from engine.models.causal_lm import CausalLM
from engine.models.chat import PromptEncoder
from engine.models.child import Cancelled, Progress
from engine.models.conversion import WEIGHTS, Manifest, read_manifest
from engine.models.ends import declared_ends
from engine.models.errors import PrecisionNotAvailable, UnsupportedModel, WrongFile
from engine.models.loaded_model import LoadedModel, vocabulary_of
from engine.models.preparation import PreparedModel, prepare
from engine.models.skeleton import from_folder_errors
from engine.models.weight_only import quantize_weights
from engine.models.weights import load_float, load_int8

CPU = torch.device("cpu")

__all__ = ["LoadedModel", "load", "load_prepared"]


def load(
    name: str,
    *,
    precision: str = "auto",
    device: str = "auto",
    offline: bool = False,
    ignore_fit: bool = False,
    progress: Progress,
    cancelled: Cancelled,
) -> LoadedModel:
    """Fetch and convert what is missing, then load; ``ignore_fit``: even if the memory plan says that it will not fit.

    See ``preparation.prepare`` for names and errors.
    """
    prepared = prepare(
        name,
        precision=precision,
        device=device,
        offline=offline,
        must_fit=not ignore_fit,
        progress=progress,
        cancelled=cancelled,
    )
    return load_prepared(prepared, progress=progress, cancelled=cancelled)


def load_prepared(prepared: PreparedModel, *, progress: Progress, cancelled: Cancelled) -> LoadedModel:
    """Load a folder that is ready.

    Raises PrecisionNotAvailable when the GPU asked for is not there, WrongFile for damaged weights, UnsupportedModel,
    LoadCancelled.
    """

    def stage(done: int) -> None:
        if cancelled():
            raise LoadCancelled("Loading was stopped.")
        progress(Loading("weights", done, 2, "steps"))

    device = _device(prepared.device)
    manifest = read_manifest(prepared.folder)
    stage(0)
    tokenizer, ends = _tokenizer(prepared.folder), declared_ends(prepared.folder)
    stage(1)
    module = _module(prepared, manifest, device)
    stage(2)
    return LoadedModel(
        name=prepared.name,
        module=module.requires_grad_(False).eval(),
        tokenizer=tokenizer,
        device=device,
        precision=prepared.precision,
        context=_context(module.config, prepared),
        vocabulary=min(manifest.vocabulary if manifest else vocabulary_of(tokenizer), _rows(module)),
        eos_ids=PromptEncoder(tokenizer).end_ids() | ends,
    )


def _device(name: str) -> torch.device:
    device = torch.device(name)
    if why := device_of(device).why_not_in_torch():
        raise PrecisionNotAvailable(why)
    return device


def _tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    with from_folder_errors(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UnsupportedModel(f"The model in {folder} has no tokenizer.json, which Bassline needs.")
    tokenizer.clean_up_tokenization_spaces = False  # would eat blanks before punctuation
    return tokenizer


def _module(prepared: PreparedModel, manifest: Manifest | None, device: torch.device) -> CausalLM:
    converted_to = manifest.precision if manifest else None
    quantizes = device.type != "cpu" and prepared.precision in ("int8", "int4")
    if converted_to not in (None, "bfloat16" if quantizes else prepared.precision):
        raise WrongFile(f"{prepared.folder} was converted to {converted_to}; give the original model.")
    if quantizes:
        return quantize_weights(load_float(prepared.folder, "bfloat16", CPU), prepared.precision, device)
    if prepared.precision != "int8":
        return load_float(prepared.folder, prepared.precision, device)
    try:
        return load_int8(prepared.folder, prepared.folder / WEIGHTS)
    except (SafetensorError, KeyError) as error:
        shutil.rmtree(prepared.folder, ignore_errors=True)  # ours, and made again from the file it came from
        raise WrongFile(f"The converted copy of {prepared.name} was damaged and is removed; start again.") from error


def _context(config: PretrainedConfig, prepared: PreparedModel) -> int:
    """Tokens the model was trained to see; positions beyond make no sense to it."""
    config = config.get_text_config()
    context = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if context is None:
        if prepared.entry is None:
            raise UnsupportedModel(f"The config of {prepared.name} does not say how long its context is.")
        context = prepared.entry.context
    return int(context)


def _rows(module: CausalLM) -> int:
    """Token ids that the model has numbers for; a tokenizer may know more, such as a padding token added later."""
    rows: int = module.get_input_embeddings().num_embeddings
    return rows
