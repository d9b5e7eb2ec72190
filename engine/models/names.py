"""What a model's name means, and whether it can run here: known at once, without the network. No torch."""

import re
from dataclasses import dataclass
from pathlib import Path

from engine.backends import registry
from engine.backends.registry import default_kind
from engine.device import cores, memory_total
from engine.models import found, hub
from engine.models.catalog import DEFAULT, CatalogEntry, catalog
from engine.models.errors import ModelNotFound, PrecisionNotAvailable, WrongFile
from engine.models.gguf_file import is_gguf

_HUB_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class ResolvedModel:
    """A model that has been told from all others: exactly one of ``entry``, ``path`` and ``repository`` is set.

    ``path`` is a folder of safetensors or a GGUF file; ``precision`` and ``device`` are never "auto".
    """

    name: str
    device: str
    precision: str
    entry: CatalogEntry | None = None
    path: Path | None = None
    repository: str = ""
    revision: str = hub.MAIN


def resolve(name: str, *, precision: str = "auto", device: str = "auto") -> ResolvedModel:
    """What ``name`` means on this machine.

    ``name``: ``default``, a catalog name or alias, a folder of safetensors, a GGUF file, ``ollama/...`` or
    ``lm-studio/...`` as ``models list`` shows them, ``owner/name`` on the hub, or ``owner/name@revision``.
    Raises ModelNotFound, PrecisionNotAvailable or WrongFile.
    """
    device = choose_device(device)
    precision = choose_precision(precision, device)
    entry, path = find_entry(name), Path(name).expanduser()
    if entry is not None:
        return ResolvedModel(entry.name, device, precision, entry=entry)
    if path.is_dir():
        return ResolvedModel(path.name, device, precision, path=path.absolute())
    if path.is_file():
        if not is_gguf(path):
            raise WrongFile(f"{path.name} is not a model; give a .gguf file or a folder with config and safetensors.")
        return ResolvedModel(path.stem, device, precision, path=path.absolute())
    if (file := found.find_file(name)) is not None:
        return ResolvedModel(file.name, device, precision, path=file.path)
    if (at_hub := _HUB_NAME.fullmatch(name)) is not None and not path.parent.is_dir():
        return ResolvedModel(
            name, device, precision, repository=at_hub["repository"], revision=at_hub["revision"] or hub.MAIN
        )
    known = ", ".join(e.name for e in catalog().model)
    raise ModelNotFound(
        f"No model is called {name!r}; choose one of {known}, a folder, a .gguf file or owner/name on the hub."
    )


def find_entry(name: str) -> CatalogEntry | None:
    """The catalog's entry for a name, an alias or ``default``."""
    if name == DEFAULT:
        return catalog().default_for(registry.named(default_kind()).found(), memory_total(), cores())
    return catalog().find(name)


def choose_device(device: str) -> str:
    """A kind of device, or ``kind:N``; ``auto`` is the GPU where there is one. Raises PrecisionNotAvailable."""
    if device == "auto":
        return default_kind()
    chosen = registry.find(device)
    if chosen is None:
        *most, last = ("auto", *registry.kinds())
        raise PrecisionNotAvailable(f"Device {device!r} is not known; choose {', '.join(most)} or {last}.")
    if why := chosen.why_not():
        raise PrecisionNotAvailable(why)
    number, count = chosen.number or 0, len(chosen.found())
    if 0 < count <= number:
        raise PrecisionNotAvailable(f"There is no GPU number {number} here; the last is {chosen.kind}:{count - 1}.")
    return device


def choose_precision(precision: str, device: str) -> str:
    """The precision to compute in; ``auto`` is what the device is best at. Raises PrecisionNotAvailable."""
    chosen = registry.named(device)
    if precision == "auto":
        return chosen.automatic_precision()
    if why := chosen.why_not_precision(precision):
        raise PrecisionNotAvailable(why)
    return precision
