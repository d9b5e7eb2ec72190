"""The kinds of device that models run on, by name. No torch: what is behind a name is imported when it is asked for.

To add a backend: one file with a subclass of ``Device``, and one ``add``.
"""

import functools
import re
from importlib import import_module
from typing import TYPE_CHECKING, cast

from engine.backends.device import Device

if TYPE_CHECKING:
    import torch

HOST = "cpu"
_BACKENDS: dict[str, type[Device] | str] = {}


def add(kind: str, backend: type[Device] | str) -> None:
    """``backend``: the class, or where it is found, "module:attribute". The first that works is the default."""
    if kind in _BACKENDS:
        raise ValueError(f"Device {kind!r} is registered already.")
    _BACKENDS[kind] = backend


def kinds() -> tuple[str, ...]:
    """Their names, the processor's first."""
    return tuple(_BACKENDS)


def find(name: str) -> Device | None:
    """The device that a user means by ``name``: a kind, or ``kind:N`` for one of several; None if there is no such."""
    written = re.fullmatch(r"([a-z]+)(?::(\d+))?", name)
    if written is None or written[1] not in _BACKENDS or (written[1] == HOST and written[2]):
        return None
    return _open(written[1], int(written[2]) if written[2] else None)


def named(name: str) -> Device:
    """See ``find``; raises KeyError where there is no such device."""
    device = find(name)
    if device is None:
        raise KeyError(name)
    return device


def device_of(where: "torch.device") -> Device:
    """The device of a tensor or a model."""
    return _open(where.type, None if where.type == HOST else where.index)


def accelerators() -> tuple[Device, ...]:
    """All kinds but the processor, each without a number."""
    return tuple(_open(kind, None) for kind in _BACKENDS if kind != HOST)


def default_kind() -> str:
    """Where models run when nobody says."""
    usable = (device for device in accelerators() if _is_here(device) and not device.why_unused())
    return next((device.kind for device in usable), HOST)


def why_on_cpu() -> str:
    """Why models run on the processor by default though torch could use the GPU that is here: a sentence, or empty."""
    reasons = (device.why_unused() for device in accelerators() if _is_here(device))
    why = "" if default_kind() != HOST else next(filter(None, reasons), "")
    return why and f"{why} Models run on the processor."


def _is_here(device: Device) -> bool:
    return not device.why_no_build() and bool(device.found())


@functools.lru_cache(maxsize=64)
def _open(kind: str, number: int | None) -> Device:
    backend = _BACKENDS[kind]
    if isinstance(backend, str):
        module, _, attribute = backend.partition(":")
        backend = cast(type[Device], getattr(import_module(module), attribute))
    return backend(number)


add(HOST, "engine.backends.cpu:Cpu")
add("cuda", "engine.backends.cuda:Cuda")
