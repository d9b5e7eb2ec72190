"""One box: a process that is started, read from, limited and ended, with nothing left of it."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from engine.runner import bubblewrap, cgroups, seccomp
from engine.runner.layers import MEMORY, MIB, OF_THE_BOX, OUTPUT_ENDS, OUTPUT_KEPT, PROCESSES, Layers
from engine.runner.orphans import end_orphans
from engine.runner.task import BoxTask

_LONGEST_RECORD = 4 * MIB
_LAST_OUTPUT_S = 0.5  # how long pipes may stay open after the process: a hidden grandchild can hold them for ever

_living: set[int] = set()  # leaders of boxes that have not been reaped


class Box:
    """Start with ``await Box.start(...)`` on the main thread: the kernel ends a box with the *thread* that made it.

    ``read_line`` gives its records; ``end`` must follow, whatever happens, and completes ``output``.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: str, leaf: cgroups.Leaf | None):
        self._process, self._folder, self._leaf = process, folder, leaf
        self._records = asyncio.StreamReader(limit=_LONGEST_RECORD)
        self._printed = _Printed(self.kill)
        self._readers: list[asyncio.ReadTransport] = []
        self._writer: asyncio.WriteTransport | None = None
        self._exited = asyncio.Event()
        self.ran_out_of_memory = False
        self.peak_mib: float | None = None

    @classmethod
    async def start(
        cls, layers: Layers, role: str, pipes: tuple[int, ...] = (), groups: cgroups.Groups | None = None
    ) -> "Box":
        """A box in which the stub loads what ``role`` needs and waits. ``pipes``: descriptors that it gets as well.

        Raises OSError when the process cannot be started.
        """
        folder = "" if layers.sealed else tempfile.mkdtemp(prefix="bassline-")
        leaf = groups.leaf(MEMORY, PROCESSES + OF_THE_BOX) if groups and role != "tests" else None
        if groups and role != "tests" and leaf is None:
            raise OSError("the kernel does not keep its memory limit any more")
        records, inside = os.pipe()
        try:
            with _command(layers, role, folder or "/tmp", (inside, *pipes)) as (command, descriptors):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=folder or "/",
                    env=layers.variables(folder or "/tmp"),
                    pass_fds=descriptors,
                    start_new_session=True,
                    preexec_fn=leaf.join if leaf else None,
                )
        except (OSError, subprocess.SubprocessError) as error:
            os.close(records)
            _clear(folder, leaf)
            raise OSError(str(error)) from None
        finally:
            os.close(inside)
        _living.add(process.pid)
        box = cls(process, folder, leaf)
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
        loop.call_later(_LAST_OUTPUT_S, self._close_readers)
        self._exited.set()

    def _close_readers(self) -> None:
        for reader in self._readers:
            reader.close()

    async def give(self, task: BoxTask) -> None:
        """Hands over the one task, once the stub has said hello."""
        loop = asyncio.get_running_loop()
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, self._process.stdin)
        self._writer.write(task.to_bytes())
        self._writer.close()

    async def read_line(self, seconds: float) -> bytes:
        """The next record, empty when there will be none. Raises TimeoutError, and ValueError for an endless line."""
        async with asyncio.timeout(max(seconds, 0.0)):
            return await self._records.readline()

    @property
    def has_run_out_of_memory(self) -> bool:
        return self.ran_out_of_memory or (self._leaf is not None and self._leaf.ran_out_of_memory)

    @property
    def alive(self) -> bool:
        return not self._exited.is_set()

    def kill(self) -> None:
        """Ends the group while its leader is unreaped, so the number cannot have become somebody else's."""
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            if self._leaf:
                self._leaf.kill()

    async def end(self) -> None:
        """Kills what is left, reaps it, and reads what it printed. Safe to call twice; bounded in time."""
        if self._process.returncode is not None:
            return
        if self._leaf:
            self.ran_out_of_memory, self.peak_mib = self._leaf.ran_out_of_memory, self._leaf.peak_mib
        self.kill()
        await self._exited.wait()
        self._process.wait()
        _living.discard(self._process.pid)
        try:
            async with asyncio.timeout(_LAST_OUTPUT_S):
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
        for _ in range(200):
            if _clear(self._folder, self._leaf):
                break
            await asyncio.sleep(0.005)  # ended for lack of memory, a process takes up to 0.6 s to vanish

    @property
    def output(self) -> str:
        return bytes(self._printed.kept).decode("utf-8", "replace")

    @property
    def output_bytes(self) -> int:
        return self._printed.total

    @property
    def flooded(self) -> bool:
        return self._printed.total > OUTPUT_ENDS


@contextlib.contextmanager
def _command(
    layers: Layers, role: str, home: str, descriptors: tuple[int, ...]
) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The command line of one box, and the descriptors that it must inherit. The first one is for its records."""
    settings = {**layers.settings(home), "role": role, "records": descriptors[0], "pipes": descriptors[1:]}
    python = os.path.realpath(sys.executable)
    stub = [python, "-s", "-P", "-B", "-S", "-m", "engine.runner.stub", json.dumps(settings)]
    if not layers.sealed:
        yield stub, descriptors
        return
    with contextlib.ExitStack() as opened:
        program = seccomp.program()
        filtered = opened.enter_context(_readable(program)) if program else None
        words = bubblewrap.options(layers, role, filtered)
        arguments = opened.enter_context(_readable("".join(f"{word}\0" for word in words).encode()))
        inherited = (*descriptors, arguments) if filtered is None else (*descriptors, arguments, filtered)
        yield [layers.program, "--args", str(arguments), "--", *stub], inherited


@contextlib.contextmanager
def _readable(data: bytes) -> Iterator[int]:
    """A descriptor from which ``data`` is read once."""
    descriptor = os.memfd_create("bassline")
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _clear(folder: str, leaf: cgroups.Leaf | None) -> bool:
    """Takes away what a box had on the computer; False when its group is not empty yet."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return leaf is None or leaf.remove()


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
