"""What a GGUF file says about itself, read before anything is converted: is it whole, and can it be run? No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader

from engine.models.errors import UnsupportedModel, WrongFile

_UNUSED_TOKEN = 5  # tokenizer.ggml.token_type of entries that only pad the vocabulary
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True)
class GgufHeader:
    """``bytes`` is the size the file must have; ``vocabulary`` counts the token ids that are not mere padding.

    ``special_ids`` has the ids of ``bos``, ``eos`` and ``pad``, as far as the file names them. ``sizes``: every whole
    number under the architecture's name, such as ``block_count``. ``rows``: token ids with padding; ``tied``: the head
    is the embedding.
    """

    architecture: str
    parameters: int
    bytes: int
    vocabulary: int
    special_ids: dict[str, int]
    sizes: dict[str, int]
    rows: int
    tied: bool


class _HeaderReader(GGUFReader):
    """Reads names, types and places of the tensors, but not the tensors, which a cut-off file does not have."""

    end = 0
    parameters = 0
    tied = True

    def _build_tensors(self, start_offs: int, fields: Sequence) -> None:
        for field in fields:
            _, name, _, dims, raw_type, offset = field.parts
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
    that gguf does not know.
    """
    _check_beginning(path)
    try:
        reader = _HeaderReader(path)
        architecture = reader.fields["general.architecture"].contents()
        vocabulary, special_ids = _vocabulary(reader), _special_ids(reader)
        rows = len(reader.fields["tokenizer.ggml.token_type"].contents())
        sizes = _sizes(reader, architecture)
    except (IndexError, ValueError, KeyError, UnicodeDecodeError, OverflowError, MemoryError):
        raise WrongFile(f"{path.name} is damaged or cut off: its header cannot be read; fetch it again.") from None
    size = path.stat().st_size
    if size < reader.end:
        raise WrongFile(f"{path.name} is incomplete: {megabytes(size)} of {megabytes(reader.end)} MB; fetch it again.")
    return GgufHeader(
        architecture, reader.parameters, reader.end, vocabulary, special_ids, sizes, rows, tied=reader.tied
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
            f"{path.name} is a Git LFS pointer, a few lines of text in place of the weights; fetch the file."
        )
    if not start.startswith(b"GGUF"):
        raise WrongFile(f"{path.name} is not a GGUF file.")


def _vocabulary(reader: GGUFReader) -> int:
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    return max((id_ for id_, type_ in enumerate(types) if type_ != _UNUSED_TOKEN), default=-1) + 1


def _sizes(reader: GGUFReader, architecture: str) -> dict[str, int]:
    prefix = f"{architecture}."
    found = {name: field.contents() for name, field in reader.fields.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items() if type(value) is int}


def _special_ids(reader: GGUFReader) -> dict[str, int]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding"}
    keys = {role: f"tokenizer.ggml.{name}_token_id" for role, name in names.items()}
    return {role: int(reader.fields[key].contents()) for role, key in keys.items() if key in reader.fields}
