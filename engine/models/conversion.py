"""Weights as published to weights as loaded, once: quantised and kept in a folder of their own.

Runs in a child process (``python -m engine.models.conversion SOURCE FOLDER PRECISION``), because dequantising is one
long blocking call, takes memory that should go back to the system, and must be stoppable.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cattrs

from engine.contract import BasslineError
from engine.models import child
from engine.models.errors import ConversionFailed, DiskFull, OutOfMemory, UnsupportedModel
from engine.models.folders import check_weights_folder, tensor_sizes
from engine.models.gguf_file import megabytes, read_header

if TYPE_CHECKING:  # the parent's side works without torch
    import torch
    from transformers import PretrainedConfig

FORMAT = 1  # raise it when what is written changes; older folders are then converted again
WEIGHTS = "model.safetensors"
_MANIFEST = "bassline.json"


@dataclass(frozen=True)
class Manifest:
    """What is in a converted folder. ``vocabulary`` is the number of real token ids."""

    format: int
    precision: str
    vocabulary: int


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder this module wrote; None for any other folder."""
    try:
        manifest = cattrs.structure(json.loads((folder / _MANIFEST).read_text(encoding="utf-8")), Manifest)
    except (OSError, ValueError, cattrs.BaseValidationError):
        return None
    return manifest if manifest.format == FORMAT else None


def convert(source: Path, folder: Path, precision: str, progress: child.Progress, cancelled: child.Cancelled) -> None:
    """Convert a GGUF file or a folder of safetensors into ``folder``, which appears whole or not at all.

    Raises WrongFile, UnsupportedModel, DiskFull, OutOfMemory, ConversionFailed or LoadCancelled.
    """
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was killed
    try:
        unfinished.mkdir(parents=True)
        child.run_module(
            "engine.models.conversion",
            [str(source), str(unfinished), precision],
            failure=ConversionFailed,
            progress=progress,
            cancelled=cancelled,
            environment={"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"},
        )
        os.replace(unfinished, folder)
    except OSError as error:
        raise ConversionFailed(
            f"The converted model cannot be written to {folder.parent}: {error.strerror}."
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- in the child


def _main(source: Path, folder: Path, precision: str) -> None:
    reporter = child.Reporter()
    try:
        reporter.progress("convert", 0, 0, "tensors")
        if source.is_dir():
            _convert_folder(source, folder, precision, reporter)
        else:
            _convert_gguf(source, folder, precision, reporter)
    except BasslineError as error:
        reporter.failed(error)
    except Exception as error:
        if child.is_disk_full(error):
            reporter.failed(DiskFull(f"The disk is full; make room in {folder.parent}, then try again."))
        if isinstance(error, MemoryError) or "not enough memory" in str(error):  # the second is torch's on a CPU
            reporter.failed(OutOfMemory("The memory does not suffice to convert the model; close other programs."))
        raise
    reporter.result("done")


def _convert_gguf(source: Path, folder: Path, precision: str, reporter: child.Reporter) -> None:
    header = read_header(source)
    _check_room(header.parameters, folder, precision)
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    try:
        parsed = load_gguf_checkpoint(str(source))
        config = AutoConfig.for_model(**parsed["config"])
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise UnsupportedModel(f"{source.name} holds a {header.architecture!r} model, which cannot be run.") from error
    for role, id_ in header.special_ids.items():  # transformers 5.17 gets them wrong
        setattr(tokenizer, f"{role}_token", tokenizer.convert_ids_to_tokens(id_))
    tensors = _gguf_tensors(source, config, parsed, reporter)
    _write(tensors, config, folder, precision)
    tokenizer.save_pretrained(folder)
    GenerationConfig.from_model_config(config).save_pretrained(folder)
    _write_manifest(folder, precision, header.vocabulary)


def _check_room(parameters: int, folder: Path, precision: str) -> None:
    """At int8 the embedding stays float32 beside its int8 head, so small models need up to 3 bytes per weight."""
    needed = parameters * {"int8": 3, "float32": 4}.get(precision, 2)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFull(
            f"Converting the model needs {megabytes(needed)} MB in {folder.parent}, "
            f"and only {megabytes(free)} MB are free there."
        )


def _gguf_tensors(
    source: Path, config: "PretrainedConfig", parsed: dict[str, Any], reporter: child.Reporter
) -> "Iterator[tuple[str, torch.Tensor]]":
    """Names as in transformers and float32 tensors, one at a time, so that memory never holds the model twice."""
    import numpy as np
    import torch
    from gguf import GGUFReader, dequantize
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    from engine.models.weights import empty_model

    reader = GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=parsed["config"])
    names = get_gguf_hf_weights_map(empty_model(config), processor)
    parsed["tensors"] = {}  # experts are gathered here by their processor
    for done, tensor in enumerate(reader.tensors):
        reporter.progress("convert", done, len(reader.tensors), "tensors")
        weights = dequantize(tensor.data, tensor.tensor_type)
        result = processor.process(
            weights=weights, name=tensor.name, tensor_key_mapping=names, parsed_parameters=parsed
        )
        if result.name in names:
            yield names[result.name], torch.from_numpy(np.array(result.weights))
    yield from parsed["tensors"].items()


def _convert_folder(source: Path, folder: Path, precision: str, reporter: child.Reporter) -> None:
    _check_room(sum(tensor_sizes(check_weights_folder(source)).values()), folder, precision)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from engine.models.weights import from_folder_errors

    with from_folder_errors(source):
        model = AutoModelForCausalLM.from_pretrained(source, dtype="auto", local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)

    def tensors() -> "Iterator[tuple[str, torch.Tensor]]":
        for done, (name, tensor) in enumerate(state.items()):
            reporter.progress("convert", done, len(state), "tensors")
            yield name, tensor.float()

    _write(tensors(), model.config, folder, precision)
    tokenizer.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    _write_manifest(folder, precision, len(tokenizer))


def _write(
    tensors: "Iterator[tuple[str, torch.Tensor]]", config: "PretrainedConfig", folder: Path, precision: str
) -> None:
    """Config and weights, in the names of transformers; see ``weights.py`` for how int8 weights are named."""
    from safetensors.torch import save_file

    from engine.models.weights import DTYPES, quantized_tensors

    if precision == "int8":
        state = quantized_tensors(tensors, config)
    else:
        state = {name: tensor.to(DTYPES[precision]).contiguous() for name, tensor in tensors}
    save_file(state, folder / WEIGHTS, metadata={"format": "pt"})
    config.dtype = DTYPES[precision]
    config.save_pretrained(folder)


def _write_manifest(folder: Path, precision: str, vocabulary: int) -> None:
    manifest = Manifest(FORMAT, precision, vocabulary)
    (folder / _MANIFEST).write_text(json.dumps(cattrs.unstructure(manifest)), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
