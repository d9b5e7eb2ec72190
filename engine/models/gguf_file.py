"""What a GGUF file says about itself, read before anything is converted: is it whole, and can it be run? No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader

from engine.models.errors import UnsupportedModel, WrongFile

_UNUSED_TOKEN = 5  # tokenizer.ggml.token_type of entries that only pad the vocabulary
_POINTER = b"version https://git-lfs"
_ROLES = {"bos": "bos", "eos": "eos", "pad": "padding", "eot": "eot", "eom": "eom"}
_SPECIAL, _ENDS = ("bos", "eos", "pad"), ("eos", "eot", "eom")
_CHOOSE = "name the GGUF of a model that writes text."
_KINDS = {  # of general.type
    "adapter": "holds an adapter (LoRA), which only changes the weights of a model; merge it into that model first.",
    "imatrix": "holds an importance matrix, by which models are quantised, and no model; name the model's own GGUF.",
    "mmproj": "holds the part of a model that sees pictures; name the GGUF of the model itself.",
    "vocab": "holds a vocabulary and no weights; name the GGUF of the model itself.",
}
_ENCODERS = ("clip", "bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3", "modern-bert")


@dataclass(frozen=True)
class GgufHeader:
    """``bytes`` is the size the file must have; ``vocabulary`` counts the token ids that are not mere padding.

    ``special_ids`` has the ids of ``bos``, ``eos`` and ``pad``, as far as the file names them. ``sizes``: every whole
    number under the architecture's name, such as ``block_count``. ``rows``: token ids with padding; ``tied``: the head
    is the embedding. ``end_ids``: what the file says ends a text, a turn or a message. ``rotary``: what it says of
    stretched positions (``rope.scaling.*``), without that prefix.
    """

    architecture: str
    parameters: int
    bytes: int
    vocabulary: int
    special_ids: dict[str, int]
    sizes: dict[str, int]
    rows: int
    tied: bool
    end_ids: frozenset[int] = frozenset()
    rotary: Mapping[str, Any] = field(default_factory=dict)


class _HeaderReader(GGUFReader):
    """Reads names, types and places of the tensors, but not the tensors, which a cut-off file does not have."""

    end = 0
    parameters = 0
    tied = True

    def _build_tensors(self, start_offs: int, fields: Sequence[Any]) -> None:
        for entry in fields:
            _, name, _, dims, raw_type, offset = entry.parts
            try:
                block, size = GGML_QUANT_SIZES[GGMLQuantizationType(raw_type[0])]
            except (ValueError, KeyError):
                raise UnsupportedModel(
                    f"Tensor {bytes(name).decode(errors='replace')} has type {raw_type[0]}, "
                    "which this version of gguf does not know; update gguf or choose another file."
                ) from None
            elements = 1
            for dim in dims.tolist():
                elements *= dim
            self.parameters += elements
            self.tied = self.tied and bytes(name) != b"output.weight"
            self.end = max(self.end, int(start_offs) + int(offset[0]) + elements * size // block)


def read_header(path: Path) -> GgufHeader:
    """Check ``path`` as far as its header allows.

    Raises WrongFile for a pointer, another kind of file or one that is cut off; UnsupportedModel for tensor types
    that gguf does not know, and for what is no model by itself: an adapter, a part, a vocabulary.
    """
    _check_beginning(path)
    try:
        reader = _HeaderReader(path)
        _check_kind(path, reader)
        architecture = reader.fields["general.architecture"].contents()
        rows = len(reader.fields["tokenizer.ggml.tokens"].contents())
        vocabulary, ids = _vocabulary(reader, rows), _ids(reader, rows)
        sizes, rotary = _sizes(reader, architecture), _rotary(reader, architecture)
    except (IndexError, ValueError, KeyError, UnicodeDecodeError, OverflowError, MemoryError):
        raise WrongFile(f"{path.name} is damaged or cut off: its header cannot be read; fetch it again.") from None
    size = path.stat().st_size
    if size < reader.end:
        raise WrongFile(f"{path.name} is incomplete: {megabytes(size)} of {megabytes(reader.end)} MB; fetch it again.")
    return GgufHeader(
        architecture,
        reader.parameters,
        reader.end,
        vocabulary,
        {role: ids[role] for role in _SPECIAL if role in ids},
        sizes,
        rows,
        reader.tied,
        frozenset(ids[role] for role in _ENDS if role in ids),
        rotary,
    )


def is_gguf(path: Path) -> bool:
    """Whether it is worth a closer look: named .gguf, or beginning as a GGUF does, whatever its name."""
    if path.suffix.lower() == ".gguf":
        return True
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def megabytes(size: int) -> int:
    """Bytes as whole MB (10^6), as file managers and download pages count."""
    return size // 1_000_000


def _check_beginning(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise WrongFile(f"{path.name} cannot be read: {error.strerror}.") from error
    if start.startswith(_POINTER):
        raise WrongFile(
            f"{path.name} is a Git LFS pointer, a few lines of text in place of the weights; "
            "run git lfs pull, or fetch the file."
        )
    if not start.startswith(b"GGUF"):
        raise WrongFile(f"{path.name} is not a GGUF file.")


def _check_kind(path: Path, reader: _HeaderReader) -> None:
    """GGUF is also what lies beside models: raises UnsupportedModel, which says what it is and what to name instead."""
    kind = str(_declared(reader, "general.type", ""))
    if kind in _KINDS or kind not in ("", "model"):
        what = _KINDS.get(kind, f"holds a {kind} and no model; name the GGUF of the model itself.")
        raise UnsupportedModel(f"{path.name} {what}")
    if _declared(reader, "general.architecture", "") in _ENCODERS:
        raise UnsupportedModel(f"{path.name} holds a model that turns texts or pictures into vectors; {_CHOOSE}")
    parts = _declared(reader, "split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise UnsupportedModel(
            f"{path.name} is one of {parts} parts of a model; join them with `llama-gguf-split --merge`, and name the "
            "file that it makes."
        )
    if "general.architecture" not in reader.fields:
        raise UnsupportedModel(f"{path.name} does not say what kind of model it holds; {_CHOOSE}")
    if "tokenizer.ggml.tokens" not in reader.fields:
        raise UnsupportedModel(f"{path.name} holds no vocabulary, so it is no language model by itself; {_CHOOSE}")
    if not reader.parameters:
        raise UnsupportedModel(f"{path.name} holds a vocabulary and no weights; {_CHOOSE}")


def _declared(reader: GGUFReader, key: str, default: Any) -> Any:
    return reader.fields[key].contents() if key in reader.fields else default


def _vocabulary(reader: GGUFReader, rows: int) -> int:
    types = _declared(reader, "tokenizer.ggml.token_type", None)
    if types is None:
        return rows
    return max((id_ for id_, type_ in enumerate(types) if type_ != _UNUSED_TOKEN), default=-1) + 1


def _sizes(reader: GGUFReader, architecture: str) -> dict[str, int]:
    prefix = f"{architecture}."
    found = {name: entry.contents() for name, entry in reader.fields.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items() if type(value) is int}


def _rotary(reader: GGUFReader, architecture: str) -> dict[str, Any]:
    prefix = f"{architecture}.rope.scaling."
    return {
        name.removeprefix(prefix): entry.contents() for name, entry in reader.fields.items() if name.startswith(prefix)
    }


def _ids(reader: GGUFReader, rows: int) -> dict[str, int]:
    """Ids that the file names, by role. Raises UnsupportedModel for one that no token has."""
    declared = {role: _declared(reader, f"tokenizer.ggml.{name}_token_id", None) for role, name in _ROLES.items()}
    for role, id_ in declared.items():
        if isinstance(id_, int) and not 0 <= id_ < rows and role in _SPECIAL:
            raise UnsupportedModel(
                f"The GGUF names token {id_} as its {role} token, and holds {rows} tokens; choose another."
            )
    return {role: id_ for role, id_ in declared.items() if isinstance(id_, int) and 0 <= id_ < rows}
