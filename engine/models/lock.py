"""One maker at a time: two starts of Bassline must not fetch or convert the same model twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from engine.contract import LoadCancelled
from engine.models.child import Cancelled
from engine.models.errors import DownloadFailed

_POLL_S = 0.2


@contextmanager
def alone(target: Path, cancelled: Cancelled) -> Iterator[None]:
    """Hold ``target.lock`` while ``target`` is made; wait for another process that holds it, heeding ``cancelled``.

    Makes the parent folder. Raises LoadCancelled, or DownloadFailed when the folder cannot be written.
    """
    lock = FileLock(target.with_name(target.name + ".lock"))
    while True:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=_POLL_S)
            break
        except Timeout:
            if cancelled():
                raise LoadCancelled("Loading was stopped.") from None
        except OSError as error:
            raise DownloadFailed(f"{target.parent} cannot be written: {error.strerror}.") from error
    try:
        yield
    finally:
        lock.release()
