"""The child that converts: ``python -m engine.models.converter SOURCE FOLDER PRECISION``; see ``conversion.py``.

What is wrong with a file is found before torch is imported, which takes seconds.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cattrs

from engine.contract import BasslineError
from engine.models import child
from engine.models.conversion import FORMAT, MANIFEST, WEIGHTS, Manifest
from engine.models.errors import DiskFull, OutOfMemory, UnsupportedModel
from engine.models.folders import check_weights_folder, tensor_sizes
from engine.models.gguf_file import megabytes, read_header

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig


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
    except (ValueError, KeyError, NotImplementedError) as error:  # the last is transformers', for kinds it cannot read
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
    files = check_weights_folder(source)
    sizes = tensor_sizes(files)
    _check_room(sum(sizes.values()), folder, precision)
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    from engine.models.weights import empty_model, from_folder_errors

    with from_folder_errors(source):
        config = AutoConfig.from_pretrained(source, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
        wanted = set(empty_model(config).state_dict())
    if config.tie_word_embeddings:
        wanted.discard("lm_head.weight")
    as_they_are = wanted <= sizes.keys()
    tensors = _stored_tensors(files, wanted) if as_they_are else _loaded_tensors(source, wanted)
    _write(_told(tensors, len(wanted), reporter), config, folder, precision)
    tokenizer.save_pretrained(folder)
    if (source / "generation_config.json").is_file():
        GenerationConfig.from_pretrained(source).save_pretrained(folder)
    else:
        GenerationConfig.from_model_config(config).save_pretrained(folder)
    _write_manifest(folder, precision, len(tokenizer))


def _stored_tensors(files: list[Path], wanted: set[str]) -> "Iterator[tuple[str, torch.Tensor]]":
    """One at a time from the files, so that memory never holds the model twice."""
    from safetensors import safe_open

    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in wanted & set(opened.keys()):
                yield name, opened.get_tensor(name)


def _loaded_tensors(source: Path, wanted: set[str]) -> "Iterator[tuple[str, torch.Tensor]]":
    """For files with names of their own, which transformers knows how to translate as it loads the whole model."""
    from transformers import AutoModelForCausalLM

    from engine.models.weights import from_folder_errors

    with from_folder_errors(source):
        model = AutoModelForCausalLM.from_pretrained(source, dtype="auto", local_files_only=True)
    yield from ((name, tensor) for name, tensor in model.state_dict().items() if name in wanted)


def _told(
    tensors: "Iterator[tuple[str, torch.Tensor]]", count: int, reporter: child.Reporter
) -> "Iterator[tuple[str, torch.Tensor]]":
    for done, (name, tensor) in enumerate(tensors):
        reporter.progress("convert", done, count, "tensors")
        yield name, tensor.float()


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
    (folder / MANIFEST).write_text(json.dumps(cattrs.unstructure(manifest)), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
