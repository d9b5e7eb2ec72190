"""What a model's name means, and whether it can run here: known at once, without the network. No torch."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from engine.device import cores, default_kind, memory_total, nvidia_gpus, why_no_cuda
from engine.models import found, hub
from engine.models.catalog import DEFAULT, CatalogEntry, catalog
from engine.models.errors import ModelNotFound, PrecisionNotAvailable, WrongFile
from engine.models.gguf_file import is_gguf

_ON_CPU = ("int8", "float32", "bfloat16")
_ON_CUDA = ("bfloat16", "float16", "float32", "int8", "int4")
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
        gpus = nvidia_gpus() if default_kind() == "cuda" else ()
        return catalog().default_for(gpus, memory_total(), cores())
    return catalog().find(name)


def choose_device(device: str) -> str:
    """``cpu``, ``cuda`` or ``cuda:N``; ``auto`` is the GPU where there is one. Raises PrecisionNotAvailable."""
    if device == "auto":
        return default_kind()
    if re.fullmatch(r"cpu|cuda(:\d+)?", device) is None:
        raise PrecisionNotAvailable(f"Device {device!r} is not known; choose auto, cpu or cuda.")
    if device != "cpu" and (why := why_no_cuda()):
        raise PrecisionNotAvailable(why)
    number = int(device.partition(":")[2] or 0)
    if device != "cpu" and nvidia_gpus() and number >= len(nvidia_gpus()):
        raise PrecisionNotAvailable(f"There is no GPU number {number} here; the last is cuda:{len(nvidia_gpus()) - 1}.")
    return device


def choose_precision(precision: str, device: str) -> str:
    """The precision to compute in; ``auto`` is int8 on a CPU that has it, bfloat16 on a GPU."""
    if device == "cpu":
        if precision == "auto":
            return "int8" if _cpu_has_int8() else "float32"
        if precision == "int8" and not _cpu_has_int8():
            raise PrecisionNotAvailable("int8 needs an x86 processor; choose float32.")
        if precision == "int4":
            raise PrecisionNotAvailable("int4 is for GPUs; on a CPU int8 is faster, so choose int8 or auto.")
        possible: tuple[str, ...] = _ON_CPU
    else:
        precision = "bfloat16" if precision == "auto" else precision
        possible = _ON_CUDA
    if precision not in possible:
        raise PrecisionNotAvailable(f"{precision} is not available on {device}; choose {', '.join(possible)}.")
    return precision


def _cpu_has_int8() -> bool:
    """FBGEMM, which multiplies int8, exists for x86 alone."""
    return platform.machine().lower() in ("x86_64", "amd64")
