"""The child that converts: ``python -m engine.models.conversion_process SOURCE FOLDER PRECISION``; see
``conversion.py``.

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
from engine.models.completeness import check_leftovers, check_missing, check_shapes
from engine.models.conversion import FORMAT, MANIFEST, WEIGHTS, Manifest
from engine.models.ends import declared_ends, write_ends
from engine.models.errors import DiskFull, OutOfMemory, UnsupportedModel
from engine.models.folders import check_weights_folder, tensor_sizes
from engine.models.gguf_file import megabytes, read_header
from engine.models.rotary import FREQUENCIES, rotary_parameters

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PretrainedConfig

    from engine.models.checkpoint import Checkpoint


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
    from transformers import AutoConfig, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    from engine.models.skeleton import drop_strange_padding, empty_model

    try:
        parsed = load_gguf_checkpoint(str(source))
        theta = float(parsed["config"].get("rope_theta", 10_000.0))
        rotary = rotary_parameters(source.name, header, theta, _divisors(source))
        config = AutoConfig.for_model(**parsed["config"] | rotary)
        drop_strange_padding(config)
        model = empty_model(config)
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    except (ValueError, KeyError, NotImplementedError) as error:  # the last is transformers', for kinds it cannot read
        raise UnsupportedModel(f"{source.name} holds a {header.architecture!r} model, which cannot be run.") from error
    for role, id_ in header.special_ids.items():  # transformers 5.17 gets them wrong
        setattr(tokenizer, f"{role}_token", tokenizer.convert_ids_to_tokens(id_))
    tensors = _gguf_tensors(source, model, parsed, reporter)
    _write(tensors, model, folder, precision)
    tokenizer.save_pretrained(folder)
    write_ends(folder, header.end_ids)
    _write_manifest(folder, precision, header.vocabulary)


def _divisors(source: Path) -> list[float]:
    from gguf import GGUFReader

    found = [tensor for tensor in GGUFReader(source).tensors if tensor.name == FREQUENCIES]
    return [float(divisor) for divisor in found[0].data] if found else []


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
    source: Path, model: "nn.Module", parsed: dict[str, Any], reporter: child.Reporter
) -> "Iterator[tuple[str, torch.Tensor]]":
    """Names as in transformers and float32 tensors, one at a time, so that memory never holds the model twice.

    Ends with the errors of ``completeness`` where the file held less than the model, or more.
    """
    import numpy as np
    import torch
    from gguf import GGUFReader, dequantize
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    from engine.models.checkpoint import missing_of

    reader = GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=parsed["config"])
    names = get_gguf_hf_weights_map(model, processor)
    parsed["tensors"] = {}  # experts are gathered here by their processor
    given: dict[str, tuple[int, ...]] = {}
    unknown = []
    for done, tensor in enumerate(reader.tensors):
        reporter.progress("convert", done, len(reader.tensors), "tensors")
        weights = dequantize(tensor.data, tensor.tensor_type)
        before = len(parsed["tensors"])
        result = processor.process(
            weights=weights, name=tensor.name, tensor_key_mapping=names, parsed_parameters=parsed
        )
        if result.name in names:
            given[names[result.name]] = tuple(result.weights.shape)
            yield names[result.name], torch.from_numpy(np.array(result.weights))
        elif result.name is not None and len(parsed["tensors"]) == before:
            unknown.append(tensor.name)
    yield from parsed["tensors"].items()
    given |= {name: tuple(tensor.shape) for name, tensor in parsed["tensors"].items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    check_missing(source.name, missing_of(model, set(given)) | _half_experts({t.name for t in reader.tensors}), [])
    check_shapes(source.name, given, wanted)
    check_leftovers(source.name, unknown)


def _half_experts(names: set[str]) -> set[str]:
    """Gates of experts without their inputs, or the other way round: transformers joins both, and fills up with 0."""
    gate, up = ".ffn_gate_exps.", ".ffn_up_exps."
    others = {name.replace(gate, up) if gate in name else name.replace(up, gate) for name in names}
    return {name for name in others - names if gate in name or up in name}


def _convert_folder(source: Path, folder: Path, precision: str, reporter: child.Reporter) -> None:
    sizes = tensor_sizes(check_weights_folder(source))
    _check_room(sum(sizes.values()), folder, precision)
    ends = declared_ends(source)
    from transformers import AutoTokenizer

    from engine.models.checkpoint import open_checkpoint
    from engine.models.loaded_model import vocabulary_of
    from engine.models.skeleton import from_folder_errors

    checkpoint = open_checkpoint(source)
    with from_folder_errors(source):
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    tensors = checkpoint.exact_tensors() if checkpoint.is_exact else _loaded_tensors(checkpoint)
    _write(_reported(tensors, len(checkpoint.wanted), reporter), checkpoint.model, folder, precision)
    tokenizer.save_pretrained(folder)
    write_ends(folder, ends)
    _write_manifest(folder, precision, vocabulary_of(tokenizer))


def _loaded_tensors(checkpoint: "Checkpoint") -> "Iterator[tuple[str, torch.Tensor]]":
    """For files with names of their own, which transformers knows how to translate as it loads the whole model."""
    model = checkpoint.load("auto")
    yield from ((name, tensor) for name, tensor in model.state_dict().items() if name in checkpoint.wanted)


def _reported(
    tensors: "Iterator[tuple[str, torch.Tensor]]", count: int, reporter: child.Reporter
) -> "Iterator[tuple[str, torch.Tensor]]":
    for done, (name, tensor) in enumerate(tensors):
        reporter.progress("convert", done, count, "tensors")
        yield name, tensor.float()


def _write(tensors: "Iterator[tuple[str, torch.Tensor]]", model: "nn.Module", folder: Path, precision: str) -> None:
    """Config and weights, in the names of transformers; see ``weights.py`` for how int8 weights are named."""
    from safetensors.torch import save_file

    from engine.models.weights import DTYPES, quantized_tensors

    if precision == "int8":
        state = quantized_tensors(tensors, model)
    else:
        state = {name: tensor.to(DTYPES[precision]).contiguous() for name, tensor in tensors}
    save_file(state, folder / WEIGHTS, metadata={"format": "pt"})
    config: PretrainedConfig = model.config
    config.dtype = DTYPES[precision]
    config.save_pretrained(folder)


def _write_manifest(folder: Path, precision: str, vocabulary: int) -> None:
    manifest = Manifest(FORMAT, precision, vocabulary)
    (folder / MANIFEST).write_text(json.dumps(cattrs.unstructure(manifest)), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
