"""Saving code and whole runs: whole files or none, never over another file unasked, every byte as it was."""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.contract import BasslineError
from engine.selection.languages import EXTENSIONS, UNKNOWN, extension
from engine.session.run import Run

RESULT = "result.json"
TESTS = "tests.py"

_ENDINGS = "|".join(re.escape(ending) for ending in sorted({*EXTENSIONS.values(), UNKNOWN}))
_OURS = re.compile(rf"(?:best|candidate-\d+)(?:{_ENDINGS})")

_REASONS = {
    "ENOSPC": "the disk is full",
    "EDQUOT": "your disk quota is used up",
    "EACCES": "you may not write there",
    "EPERM": "you may not write there",
    "EROFS": "the disk is read-only",
    "ENAMETOOLONG": "the name is too long",
    "EEXIST": "part of the path is a file",
    "ENOTDIR": "part of the path is a file",
    "EISDIR": "it is a folder",
}


class AlreadyExists(BasslineError):
    """A file of that name is there and nobody said to replace it. ``path`` is the file."""

    def __init__(self, path: Path):
        super().__init__(f"{path} exists already; choose another name, or say that it may be replaced.")
        self.path = path


class NotOurs(BasslineError):
    """A file that an export would write over, and that no earlier export left there. ``path`` is the file."""

    def __init__(self, path: Path):
        super().__init__(f"{path} is no file of an earlier export, so it is not replaced; choose another folder.")
        self.path = path


class Changed(BasslineError):
    """The file that was to be replaced is not the one that was read."""

    def __init__(self, path: Path):
        super().__init__(f"{path} has changed since it was read, so it is not replaced.")


class CannotSave(BasslineError):
    """The system refused; whatever was there before is untouched."""


def suggested_name(run: Run, number: int) -> str:
    """A file name for one candidate; the ending follows the language of its code block, ``.txt`` if unknown."""
    return f"candidate-{number}{_extension(run, number)}"


def save(path: Path, text: str, overwrite: bool = False) -> Path:
    """Write ``text`` as UTF-8, byte for byte, and return the path.

    The file appears whole or not at all. Raises AlreadyExists, and CannotSave with the system's reason.
    """
    path = path.resolve() if path.is_symlink() else path.absolute()
    with _sentences(path):
        if not overwrite and path.exists():
            raise AlreadyExists(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.parent / f".{path.name[:100]}.{secrets.token_hex(4)}.tmp"
        try:
            with open(beside, "xb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))
                file.flush()
                os.fsync(file.fileno())
            _put_in_place(beside, path, overwrite)
        finally:
            beside.unlink(missing_ok=True)
    return path


def check_file(path: Path) -> None:
    """Raise what ``replace_file`` would raise where one may not write, before a long run rather than after it."""
    target = path.resolve()
    with _sentences(target):
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        trial = target.parent / f".{secrets.token_hex(4)}.tmp"
        trial.touch(exist_ok=False)
        trial.unlink()


def replace_file(path: Path, before: bytes, text: str) -> Path:
    """Write ``text`` in the place of the file at ``path``, which was read as ``before``, and return the path.

    Whole or not at all. Raises Changed when it says something else by now, and CannotSave.
    """
    with _sentences(path):
        try:
            now = path.read_bytes()
        except FileNotFoundError:
            raise Changed(path) from None
    if now != before:
        raise Changed(path)
    return save(path, text, overwrite=True)


def check_folder(folder: Path, overwrite: bool = False, tests: bool = True) -> None:
    """Raise what ``export_run`` would raise, before a long run rather than after it.

    Whether one can write there is tried out; nothing is left behind. ``tests``: whether the run has any.
    """
    _check_names(folder, overwrite, tests)
    with _sentences(folder):
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            trial = folder / f".{secrets.token_hex(4)}.tmp"
            trial.touch(exist_ok=False)
            trial.unlink()
        finally:
            for path in made:
                with contextlib.suppress(OSError):
                    path.rmdir()


def export_run(run: Run, folder: Path, overwrite: bool = False) -> list[Path]:
    """Save a whole run and return the files written.

    One file per candidate that wrote something, the tests, ``result.json`` with settings, seeds, answers, reports
    and versions, and ``best`` with the code of the candidate to take: the best one, unless tests ran and none
    passed. With ``overwrite`` the files of an earlier export are replaced and its surplus ones removed. Those are the
    files that its ``result.json`` names; every other file is somebody's own. It is never touched, and when one has a
    name that an export uses (your own ``tests.py``), nothing is written, ``overwrite`` or not.
    Raises AlreadyExists, NotOurs and CannotSave.
    """
    earlier = _check_names(folder, overwrite, bool(run.tests))
    files = {suggested_name(run, n): c.code for n, c in sorted(run.candidates.items()) if c.code.strip()}
    pick = chosen(run)
    if pick is not None:
        files[f"best{_extension(run, pick)}"] = run.candidates[pick].code
    if run.tests:
        files[TESTS] = run.tests
    files[RESULT] = _as_json(_record(run, list(files)))
    written = [save(folder / name, text, overwrite) for name, text in files.items()]
    with _sentences(folder):
        for surplus in sorted(earlier - set(files)):
            if not (folder / surplus).is_dir():
                (folder / surplus).unlink(missing_ok=True)
    return written


def export_json(run: Run, path: Path, overwrite: bool = False) -> Path:
    """Save a whole run to one JSON file: what ``result.json`` of a folder holds, and the tests.

    Raises AlreadyExists and CannotSave.
    """
    record = _record(run, []) | {"test_file": run.tests}
    return save(path, _as_json(record), overwrite)


def export_with_tests(run: Run, number: int, folder: Path, overwrite: bool = False) -> list[Path]:
    """Save one candidate's code as ``solution`` with the tests beside it, so that ``from solution import`` works there.

    Returns the files written. Nothing is written when either name is taken, unless ``overwrite`` says that both may be
    replaced. Raises AlreadyExists and CannotSave.
    """
    files = {f"solution{_extension(run, number)}": run.candidates[number].code, TESTS: run.tests}
    with _sentences(folder):
        taken = [folder / name for name in files if (folder / name).exists()]
    if taken and not overwrite:
        raise AlreadyExists(taken[0])
    return [save(folder / name, text, overwrite) for name, text in files.items()]


def chosen(run: Run) -> int | None:
    """The candidate to take without asking: the best; with tests, the best that passes them."""
    best = run.best()
    if best is None or (run.tests.strip() and not run.candidates[best].passed):
        return None
    return best


def _check_names(folder: Path, overwrite: bool, tests: bool) -> set[str]:
    """The names of an earlier export in ``folder``. Raises when a file is in the way."""
    with _sentences(folder):
        if folder.exists() and not folder.is_dir():
            raise AlreadyExists(folder)
        there = sorted(folder.iterdir()) if folder.exists() else []
        earlier = _earlier(folder)
    for path in there:
        if path.name == RESULT or (tests and path.name == TESTS) or _OURS.fullmatch(path.name):
            if not overwrite:
                raise AlreadyExists(path)
            if path.name not in earlier:
                raise NotOurs(path)
    return earlier


def _earlier(folder: Path) -> set[str]:
    """The files of an earlier export as its record names them; empty when there is no record of ours."""
    try:
        record = json.loads((folder / RESULT).read_bytes())
    except (FileNotFoundError, IsADirectoryError, ValueError, RecursionError):
        return set()
    names = record.get("files") if isinstance(record, dict) and "format" in record else None
    if not isinstance(names, list):
        return set()
    return {RESULT} | {n for n in names if isinstance(n, str) and (n == TESTS or _OURS.fullmatch(n))}


def summed_up(run: Run) -> dict[str, Any]:
    """The whole run as one JSON object: what was asked of which models, what came of it, and which is best."""
    choice, ready = run.provenance.choice, run.provenance.ready
    return {
        "outcome": run.outcome or run.state,
        "reason": run.reason,
        "best": chosen(run),
        "request": asdict(run.request),
        "models": asdict(choice) if choice else None,
        "loaded": asdict(ready) if ready else None,
        "versions": run.provenance.versions,
        **run.result(),
    }


def _record(run: Run, files: list[str]) -> dict[str, Any]:
    reports = {str(n): c.report.to_dict() for n, c in sorted(run.candidates.items()) if c.report}
    saved_at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": 1, "saved_at": saved_at, "files": files, **summed_up(run), "reports": reports}


def _as_json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def _extension(run: Run, number: int) -> str:
    return extension(run.candidates[number].block.language)


def _put_in_place(beside: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, beside)
        os.replace(beside, path)
        return
    try:
        os.link(beside, path)  # unlike a rename it fails when somebody made the file meanwhile
    except FileExistsError:
        raise AlreadyExists(path) from None
    except OSError:  # a file system without hard links
        if path.exists():
            raise AlreadyExists(path) from None
        os.replace(beside, path)


@contextlib.contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(errno.errorcode.get(error.errno or 0, ""), error.strerror or str(error))
        raise CannotSave(f"{path} could not be saved: {reason}; choose another place.") from error
