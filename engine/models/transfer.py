"""One file from a server onto the disk: streamed, resumed after anything, checked before it gets its name.

Used inside the children that download (``hub.py``, ``mirrors.py``): calls block, and whoever wants to stop them ends
the process. What has arrived stays in ``NAME.part`` beside the target: a kill costs nothing that was on the disk.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from engine.models.errors import DownloadFailed, WrongFile
from engine.network.transport import obstacle

STALL_S = 10.0  # without a byte for so long, a connection counts as dead
TRIES = 4  # connections in a row that bring nothing
_PAUSE_S = 0.5  # before the second try; doubled each time
_BLOCK = 1 << 22
_TELL_S = 0.05

Arrived = Callable[[int, int], None]


@dataclass(frozen=True)
class Remote:
    """A file on a server. ``bytes`` 0: not known before; ``sha256`` empty: only its length can be checked."""

    url: str
    name: str
    bytes: int = 0
    sha256: str = ""
    headers: dict[str, str] = field(default_factory=dict)


class DownloadRefused(DownloadFailed):
    """The server answers, and says no; ``status`` is HTTP's."""

    def __init__(self, sentence: str, status: int):
        super().__init__(sentence)
        self.status = status


class _Interrupted(Exception):
    """The connection ended early; ``why`` completes "the server ..."."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why


class Download:
    """Files through one HTTP client. ``stall_s`` and ``pause_s`` are for tests."""

    def __init__(self, client: httpx2.Client, stall_s: float = STALL_S, pause_s: float = _PAUSE_S):
        self._client, self._stall_s, self._pause_s = client, stall_s, pause_s

    def fetch(self, remote: Remote, target: Path, arrived: Arrived) -> None:
        """Bring ``remote`` to ``target``; ``arrived(bytes, total)`` on the way, total 0 while it is not known.

        Raises DownloadFailed (what is here stays for the next time), WrongFile, or OSError from the disk.
        """
        for attempt in (1, 2):
            self._bring(remote, target, arrived)
            if not remote.sha256 or digest(_part(target)) == remote.sha256:
                break
            _part(target).unlink()  # halves of two versions of the file, if it was resumed: one fresh start tells
            if attempt == 2:
                raise WrongFile(f"{remote.name} arrived with the wrong bytes and was removed; try again.")
        os.replace(_part(target), target)
        _tag(target).unlink(missing_ok=True)

    def _bring(self, remote: Remote, target: Path, arrived: Arrived) -> None:
        """Fill ``NAME.part``, over as many connections as it takes."""
        fruitless = 0
        while True:
            before = _size(_part(target))
            if remote.bytes and before == remote.bytes:
                return
            try:
                return self._stream(remote, target, before, arrived)
            except _Interrupted as error:
                fruitless = 0 if _size(_part(target)) > before else fruitless + 1
                if fruitless == TRIES:
                    raise DownloadFailed(
                        f"{remote.name}: the server {error.why}, {TRIES} times in a row; what has arrived is kept, "
                        "so try again later."
                    ) from error
                time.sleep(self._pause_s * 2**fruitless)

    def _stream(self, remote: Remote, target: Path, have: int, arrived: Arrived) -> None:
        with self._asked(remote, target, have) as response:
            if response.status_code == 416:  # there is nothing behind what we have
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return
                _part(target).unlink(missing_ok=True)
                raise _Interrupted("has another file by now")
            _check_status(response, remote)
            total = _total(response) or remote.bytes
            if not _goes_on(response, have) or (remote.bytes and total != remote.bytes):
                have = 0  # the server ignores ranges, or has another file by now: it sends it from the start
            if remote.bytes and total != remote.bytes:
                raise WrongFile(
                    f"{remote.name} has {total} bytes on the server in place of {remote.bytes}; it was replaced there."
                )
            _remember(target, response)
            with _part(target).open("r+b" if have else "wb") as file:
                file.truncate(have)
                file.seek(have)
                have = _copy(response, file.write, have, lambda done: arrived(done, total))
        if total and have < total:
            raise _Interrupted("ended the connection early")

    @contextlib.contextmanager
    def _asked(self, remote: Remote, target: Path, have: int) -> Iterator[httpx2.Response]:
        """The response to a request for what is missing. Raises _Interrupted for every failure of the network."""
        headers = {"Accept-Encoding": "identity", **remote.headers}
        if have:
            headers["Range"] = f"bytes={have}-"
            with contextlib.suppress(OSError):
                headers["If-Range"] = _tag(target).read_text(encoding="ascii")
        try:
            with self._client.stream("GET", remote.url, headers=headers, timeout=self._stall_s) as response:
                yield response
        except httpx2.TimeoutException as error:
            raise _Interrupted(f"sent nothing for {self._stall_s:.0f} s") from error
        except httpx2.TransportError as error:
            why = obstacle(error, remote.url) or ("" if have else str(error))
            raise _Interrupted(f"cannot be reached ({why})" if why else "ended the connection early") from error


def digest(path: Path, done: Callable[[int], None] = lambda done: None) -> str:
    """SHA-256 of a file; ``done(bytes)`` on the way."""
    sha256, read = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            sha256.update(block)
            read += len(block)
            done(read)
    return sha256.hexdigest()


def here(target: Path) -> int:
    """Bytes of ``target`` that an interrupted download left."""
    return _size(_part(target))


def _check_status(response: httpx2.Response, remote: Remote) -> None:
    if response.status_code >= 500 or response.status_code in (408, 429):
        raise _Interrupted(f"answers {response.status_code} {response.reason_phrase}")
    if response.status_code not in (200, 206):
        answer = f"{response.status_code} {response.reason_phrase}"
        raise DownloadRefused(f"{remote.name} cannot be fetched: the server answers {answer}.", response.status_code)


def _goes_on(response: httpx2.Response, have: int) -> bool:
    """Whether the body is what follows the first ``have`` bytes."""
    return response.status_code == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _total(response: httpx2.Response) -> int:
    """The whole file's length as the server says it; 0 if it does not."""
    length = response.headers.get("Content-Length", "0")
    if response.status_code == 206:
        length = response.headers.get("Content-Range", "").rpartition("/")[2]
    return int(length) if length.isdigit() else 0


def _copy(response: httpx2.Response, write: Callable[[bytes], object], have: int, tell: Callable[[int], None]) -> int:
    shown_at = 0.0
    for block in response.iter_raw():
        write(block)
        have += len(block)
        if time.monotonic() - shown_at > _TELL_S:
            tell(have)
            shown_at = time.monotonic()
    tell(have)
    return have


def _remember(target: Path, response: httpx2.Response) -> None:
    """What tells this version of the file from another: a request for the rest is only honoured while it holds."""
    tag = response.headers.get("ETag", "")
    if not tag or tag.startswith("W/"):
        tag = response.headers.get("Last-Modified", "")
    if tag.isascii() and tag:
        _tag(target).write_text(tag, encoding="ascii")
    else:
        _tag(target).unlink(missing_ok=True)


def _part(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _tag(target: Path) -> Path:
    return target.with_name(target.name + ".tag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
