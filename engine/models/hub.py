"""Files from the Hugging Face hub: its library's answers, errors, tokens and cache, our own transfer of the bytes.

huggingface_hub from 2.0 on keeps nothing of a file whose download was ended, so the bytes come through ``transfer.py``,
which resumes, and are put where the library looks for them: other programs find them in the cache, and we find theirs.
Downloads run in a child process (``python -m engine.models.hub ORDER``), so that they can be stopped.
"""

import errno
import fnmatch
import functools
import json
import os
import queue
import shutil
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.contract import BasslineError
from engine.models import child, transfer
from engine.models.errors import DiskFull, DownloadFailed, ModelNotFound, WrongFile
from engine.models.folders import check_weights_folder
from engine.models.gguf_file import megabytes

PROBE_S = 3.0
MAIN = "main"
_WANTED = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt")


@dataclass(frozen=True)
class _Order:
    """A repository at a revision (branch, tag or commit), or one ``file`` of it."""

    repository: str
    revision: str
    file: str
    stall_s: float


def reachable() -> bool:
    """Whether the hub answers at all, known within three seconds also where the network swallows packets."""
    return _knock()[0]


def why_not() -> str:
    """The proxy or the certificate that stands between here and the hub, as half a sentence; nothing if it is neither.

    Asks the hub once more; for the sentence that tells a user why it cannot be reached.
    """
    return _knock()[1]


def _knock() -> tuple[bool, str]:
    """Whether the hub answers, and what is in the way if it is known."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False, "HF_HUB_OFFLINE forbids it"
    answers: queue.SimpleQueue[tuple[bool, str]] = queue.SimpleQueue()

    def ask() -> None:
        import httpx2

        from engine.network.transport import Transport, obstacle

        try:
            with httpx2.Client(transport=Transport(), timeout=PROBE_S, follow_redirects=True) as client:
                answers.put((client.head(constants.ENDPOINT).status_code < 500, ""))
        except BasslineError as error:  # a proxy or a file of certificates that cannot be used
            answers.put((False, str(error).rstrip(".")))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            answers.put((False, obstacle(error, constants.ENDPOINT)))

    threading.Thread(target=ask, name="hub-probe", daemon=True).start()  # name look-up has no time-out of its own
    try:
        return answers.get(timeout=PROBE_S)
    except queue.Empty:
        return False, ""


def cached_file(repository: str, name: str, revision: str = MAIN) -> Path | None:
    """A file that is in the hub's cache already."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(repository, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def cached_repository(repository: str, revision: str = MAIN) -> Path | None:
    """The folder of a repository whose weights are all in the hub's cache."""
    config = cached_file(repository, "config.json", revision)
    if config is None:
        return None
    try:
        check_weights_folder(config.parent)
    except WrongFile:
        return None
    return config.parent


def cached_copies(repository: str) -> list[Path]:
    """The folder that the cache holds of a repository, finished or not; empty when there is none."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / folder_name(repository)
    return [folder] if folder.is_dir() else []


def folder_name(repository: str) -> str:
    """What the hub's library calls the folder of a model's repository."""
    return f"models--{repository.replace('/', '--')}"


def fetch_file(
    repository: str,
    name: str,
    *,
    progress: child.Progress,
    cancelled: child.Cancelled,
    revision: str = MAIN,
    stall_s: float = transfer.STALL_S,
) -> Path:
    """Download one file into the hub's cache; one that was interrupted goes on where it was."""
    return _run(_Order(repository, revision, name, stall_s), progress, cancelled)


def fetch_repository(
    repository: str,
    *,
    progress: child.Progress,
    cancelled: child.Cancelled,
    revision: str = MAIN,
    stall_s: float = transfer.STALL_S,
) -> Path:
    """Download config, tokenizer and safetensors of a repository into the hub's cache; give their folder."""
    return _run(_Order(repository, revision, "", stall_s), progress, cancelled)


def _run(order: _Order, progress: child.Progress, cancelled: child.Cancelled) -> Path:
    answer = child.run_module(
        "engine.models.hub",
        [json.dumps(asdict(order))],
        failure=DownloadFailed,
        progress=progress,
        cancelled=cancelled,
        stall_s=order.stall_s,
    )
    return Path(answer)


# ---------------------------------------------------------------------------------------------- in the child


def _main(order: _Order) -> None:
    reporter = child.Reporter()
    try:
        reporter.result(str(_fetch(order, reporter)))
    except BasslineError as error:
        reporter.failed(error)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            reporter.failed(DiskFull(f"The disk is full; {order.repository} goes on from here once there is room."))
        reporter.failed(DownloadFailed(f"{order.repository} cannot be kept in the hub's cache: {error}."))


@dataclass(frozen=True)
class _File:
    """``etag`` is the name of its bytes in the cache: SHA-256 of large files, git's own hash of small ones."""

    name: str
    bytes: int
    etag: str
    sha256: str


def _fetch(order: _Order, reporter: child.Reporter) -> Path:
    """Bring what is missing, file by file, and name the revision only when all of it is here."""
    import httpx2
    from huggingface_hub import constants

    from engine.network.transport import Transport

    commit, files = _listing(order)
    cache = Path(constants.HF_HUB_CACHE) / folder_name(order.repository)
    snapshot, blobs = cache / "snapshots" / commit, cache / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    missing = [file for file in files if not (snapshot / file.name).exists()]
    _check_room(order.repository, missing, blobs)
    total = sum(file.bytes for file in files)
    before = total - sum(file.bytes for file in missing)
    with httpx2.Client(transport=Transport(), follow_redirects=True) as client:
        download = transfer.Download(client, order.stall_s)
        for file in missing:
            if not (blobs / file.etag).exists():
                arrived = functools.partial(_tell, reporter, before, total)
                _fetch_one(download, order.repository, commit, file, blobs / file.etag, arrived)
            _link(blobs / file.etag, snapshot / file.name)
            before += file.bytes
    if order.revision != commit:
        reference = cache / "refs" / order.revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(commit, encoding="ascii")
    return snapshot / order.file if order.file else snapshot


def _tell(reporter: child.Reporter, before: int, total: int, arrived: int, _: int) -> None:
    reporter.progress("download", before + arrived, total)


def _fetch_one(
    download: transfer.Download, repository: str, commit: str, file: _File, blob: Path, arrived: transfer.Arrived
) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(repository, file.name, revision=commit)
    headers = {name: value for name, value in build_hf_headers().items() if value}
    try:
        download.fetch(transfer.Remote(url, file.name, file.bytes, file.sha256, headers), blob, arrived)
    except transfer.DownloadRefused as error:
        raise _gated(repository) if error.status in (401, 403) else error from error


def _listing(order: _Order) -> tuple[str, list[_File]]:
    """The commit that a revision means now, and the files wanted of it."""
    import httpx2
    from huggingface_hub import HfApi, constants, set_client_factory
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    from engine.network.transport import Transport, obstacle

    name = order.repository
    if constants.HF_HUB_OFFLINE:
        raise DownloadFailed(f"{name} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it.")
    set_client_factory(lambda: httpx2.Client(transport=Transport(), follow_redirects=True, timeout=None))
    try:
        info = HfApi().model_info(name, revision=order.revision, files_metadata=True, timeout=order.stall_s)
    except GatedRepoError as error:
        raise _gated(name) from error
    except RepositoryNotFoundError as error:
        raise ModelNotFound(f"The hub has no repository {name}, or it is not open to you.") from error
    except RevisionNotFoundError as error:
        raise ModelNotFound(f"{name} has no revision {order.revision} on the hub.") from error
    except BasslineError:
        raise
    except Exception as error:  # the network's own errors are of another library in every release
        if way := obstacle(error, constants.ENDPOINT):
            raise DownloadFailed(f"The hub cannot be reached for {name}: {way}.") from error
        raise DownloadFailed(f"The hub did not say what {name} holds ({_reason(error)}); try again later.") from error
    siblings = info.siblings or ()
    files = [_file(sibling) for sibling in siblings if _wanted(sibling.rfilename, order.file)]
    if not order.file and files and not any(file.name.endswith(".safetensors") for file in files):
        others = sorted(one.rfilename for one in siblings if one.rfilename.endswith((".gguf", ".bin", ".pth", ".pt")))
        raise ModelNotFound(
            f"{name} on the hub holds no safetensors{f', but {others[0]}' if others else ''}; choose a repository "
            "with safetensors, or fetch a GGUF and name the file."
        )
    if not files:
        raise ModelNotFound(f"{name} on the hub holds no {order.file or 'safetensors'}.")
    return str(info.sha), files


def _gated(repository: str) -> DownloadFailed:
    return DownloadFailed(
        f"{repository} is gated: accept its terms on its page on the hub, sign in with `hf auth login`, then try again."
    )


def _wanted(name: str, only: str) -> bool:
    return name == only if only else "/" not in name and any(fnmatch.fnmatch(name, pattern) for pattern in _WANTED)


def _file(sibling: Any) -> _File:
    if sibling.lfs:
        return _File(sibling.rfilename, sibling.lfs.size, sibling.lfs.sha256, sibling.lfs.sha256)
    return _File(sibling.rfilename, sibling.size or 0, sibling.blob_id, "")


def _reason(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _check_room(repository: str, files: list[_File], blobs: Path) -> None:
    needed = sum(max(0, file.bytes - transfer.here(blobs / file.etag)) for file in files)
    free = shutil.disk_usage(blobs).free
    if free < needed:
        raise DiskFull(
            f"{repository} needs {megabytes(needed)} MB in {blobs.parent}, "
            f"and only {megabytes(free)} MB are free there."
        )


def _link(blob: Path, name: Path) -> None:
    """As the hub's library does it: a relative link, or the bytes themselves where there are no links."""
    name.parent.mkdir(parents=True, exist_ok=True)
    try:
        name.symlink_to(os.path.relpath(blob, name.parent))
    except OSError:
        os.replace(blob, name)


if __name__ == "__main__":
    _main(_Order(**json.loads(sys.argv[1])))
