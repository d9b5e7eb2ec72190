"""One box: a process that is started, heard, bounded and ended, with nothing left of it."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

from engine.runner.layers import MIB, OUTPUT_ENDS, OUTPUT_KEPT, Layers
from engine.runner.orphans import end_orphans

_LONGEST_RECORD = 4 * MIB
_LAST_WORDS_S = 0.5  # how long pipes may stay open after the process: a hidden grandchild can hold them for ever

_living: set[int] = set()  # leaders of boxes that have not been reaped


class Box:
    """Start with ``await Box.start(...)`` on the main thread: the kernel ends a box with the *thread* that made it.

    ``hear`` gives its records; ``end`` must follow, whatever happens, and completes ``output``.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: "tempfile.TemporaryDirectory[str] | None"):
        self._process, self._folder = process, folder
        self._records = asyncio.StreamReader(limit=_LONGEST_RECORD)
        self._printed = _Printed(self.kill)
        self._readers: list[asyncio.ReadTransport] = []
        self._writer: asyncio.WriteTransport | None = None
        self._exited = asyncio.Event()

    @classmethod
    async def start(cls, layers: Layers) -> "Box":
        """Raises OSError when the process cannot be started."""
        records, inside = os.pipe()
        folder = None if layers.sealed else tempfile.TemporaryDirectory(prefix="bassline-", ignore_cleanup_errors=True)
        try:
            process = subprocess.Popen(
                layers.command(inside),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder.name if folder else "/",
                env=layers.environment(folder.name if folder else "/tmp"),
                pass_fds=(inside,),
                start_new_session=True,
            )
        except OSError:
            os.close(records)
            if folder:
                folder.cleanup()
            raise
        finally:
            os.close(inside)
        _living.add(process.pid)
        box = cls(process, folder)
        try:
            await box._listen(records)
        except BaseException:  # cancelled already
            await box.end()
            raise
        return box

    async def _listen(self, records: int) -> None:
        loop = asyncio.get_running_loop()
        self._watch = os.pidfd_open(self._process.pid)
        loop.add_reader(self._watch, self._on_exit)
        protocol = asyncio.StreamReaderProtocol(self._records)
        for factory, pipe in ((lambda: protocol, os.fdopen(records, "rb")), (self._printed, self._process.stdout)):
            transport, _ = await loop.connect_read_pipe(factory, pipe)
            self._readers.append(transport)

    def _on_exit(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._watch)
        loop.call_later(_LAST_WORDS_S, self._close_readers)
        self._exited.set()

    def _close_readers(self) -> None:
        for reader in self._readers:
            reader.close()

    async def give(self, task: dict[str, Any]) -> None:
        """Hands over the one task, once the stub has said hello."""
        loop = asyncio.get_running_loop()
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._process.stdin)
        self._writer.write(json.dumps(task).encode())
        self._writer.close()

    async def hear(self, seconds: float) -> bytes:
        """The next record, empty when there will be none. Raises TimeoutError, and ValueError for an endless line."""
        async with asyncio.timeout(max(seconds, 0.0)):
            return await self._records.readline()

    def kill(self) -> None:
        """Ends the group while its leader is unreaped, so the number cannot have become somebody else's."""
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def end(self) -> None:
        """Kills what is left, reaps it, and reads what it printed. Safe to call twice; bounded in time."""
        if self._process.returncode is not None:
            return
        self.kill()
        await self._exited.wait()
        self._process.wait()
        _living.discard(self._process.pid)
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._printed.closed.wait()
        except TimeoutError:
            pass
        os.close(self._watch)
        self._close_readers()
        if self._writer is None and self._process.stdin is not None:
            self._process.stdin.close()
        elif self._writer is not None and self._writer.get_write_buffer_size():
            self._writer.abort()
        for _ in range(100):
            if not end_orphans(_living):
                break
            await asyncio.sleep(0.005)
        if self._folder:
            self._folder.cleanup()

    @property
    def output(self) -> str:
        return bytes(self._printed.kept).decode("utf-8", "replace")

    @property
    def output_bytes(self) -> int:
        return self._printed.total

    @property
    def flooded(self) -> bool:
        return self._printed.total > OUTPUT_ENDS


class _Printed(asyncio.Protocol):
    """Keeps the first part of what a box prints and goes on draining, so that it never blocks on a full pipe."""

    def __init__(self, too_much: Callable[[], None]):
        self.kept, self.total, self.closed, self._too_much = bytearray(), 0, asyncio.Event(), too_much

    def __call__(self) -> "_Printed":
        return self

    def data_received(self, data: bytes) -> None:
        self.kept += data[: OUTPUT_KEPT - len(self.kept)]
        self.total += len(data)
        if self.total > OUTPUT_ENDS:
            self._too_much()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set()
