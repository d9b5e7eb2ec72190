"""Long blocking work in a process of its own, so that it can be watched, and stopped at once.

The child speaks JSON lines on stdout: ``{"stage", "done", "total", "unit"}`` while it works, ``{"result": ...}`` at the
end, or ``{"error": kind, "text": sentence}``. Its stdin is a pipe that nobody writes to: it closes when the parent
dies, however that happens, and the child leaves at once.
"""

import errno
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from engine import child_process, logs
from engine.contract import BasslineError, LoadCancelled, Loading
from engine.models import errors

Progress = Callable[[Loading], None]
Cancelled = Callable[[], bool]

STALLED = "stalled"  # the stage of a download that waits for its server
_SIGKILL = 9  # Windows has no name for it
_KILLED = "The {work} was ended by the system, most likely for lack of memory; close other programs and try again."
_CHECKOUT = Path(__file__).parents[2]
_POLL_S = 0.1


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    failure: type[BasslineError],
    progress: Progress,
    cancelled: Cancelled,
    environment: dict[str, str] | None = None,
    stall_s: float | None = None,
) -> Any:
    """Run ``python -m module`` to its end and give what it reported as its result.

    ``stall_s``: after so many seconds without progress, the stage is told again as ``stalled``.
    Raises the error the child named, ``failure`` when it ended without a word, LoadCancelled when ``cancelled()``.
    """
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=_CHECKOUT,
            env=child_process.environment(_CHECKOUT) | (environment or {}) | {"PYTHONUTF8": "1"},
        )
        try:
            for message in _messages(process, cancelled, stall_s):
                if "result" in message:
                    return message["result"]
                if "error" in message:
                    raise _error(message, failure)
                progress(Loading(**message))
            process.wait()
            if process.returncode == -_SIGKILL:
                raise errors.OutOfMemory(_KILLED.format(work=module.rpartition(".")[2]))
            stderr.seek(0)
            raise failure(_last_lines(module, process.returncode, stderr.read()))
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill the process if it still runs, and take it off the system's table."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _messages(
    process: subprocess.Popen[bytes], cancelled: Cancelled, stall_s: float | None
) -> Iterator[dict[str, Any]]:
    """Messages as they come, until the child closes its stdout. Looks at ``cancelled`` ten times a second."""
    assert process.stdout is not None
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process.stdout, lines), name="child-output", daemon=True)
    reader.start()
    last: dict[str, Any] = {}
    last_message = time.monotonic()
    try:
        while True:
            if cancelled():
                raise LoadCancelled("Loading was stopped.")
            try:
                line = lines.get(timeout=_POLL_S)
            except queue.Empty:
                if stall_s is not None and "stage" in last and time.monotonic() - last_message > stall_s:
                    yield last | {"stage": STALLED}
                    last = {}  # once, until there is progress again
                continue
            if line is None:
                process.wait()
                return
            last, last_message = json.loads(line), time.monotonic()
            yield last
    finally:
        if process.poll() is None:
            process.kill()  # closes the pipe, so that the reader ends
        reader.join()


def _read_lines(stream: Any, lines: "queue.SimpleQueue[bytes | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def is_disk_full(error: BaseException) -> bool:
    """Also where a library in Rust says it in words of its own."""
    if isinstance(error, errors.DiskFull) or getattr(error, "errno", None) == errno.ENOSPC:
        return True
    return f"os error {errno.ENOSPC}" in str(error)


def _error(message: dict[str, str], failure: type[BasslineError]) -> BasslineError:
    kind = getattr(errors, message["error"], failure)
    error: BasslineError = kind(message["text"])
    return error


def _last_lines(module: str, code: int, stderr: bytes) -> str:
    work = module.rpartition(".")[2]
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return f"The {work} ended unexpectedly: {lines[-1].strip() if lines else f'exit code {code}'}."


class Reporter:
    """The child's side: its stdout belongs to the messages, so whatever else prints goes to stderr."""

    def __init__(self) -> None:
        logs.start_in_child()
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        threading.Thread(target=_leave_with_the_parent, name="parent", daemon=True).start()

    def progress(self, stage: str, done: int, total: int, unit: str = "bytes") -> None:
        self._say({"stage": stage, "done": done, "total": total, "unit": unit})

    def result(self, value: Any) -> None:
        self._say({"result": value})

    def failed(self, error: BasslineError) -> NoReturn:
        self._say({"error": type(error).__name__, "text": str(error)})
        sys.exit(1)

    def _say(self, message: dict[str, Any]) -> None:
        print(json.dumps(message), file=self._out, flush=True)


def _leave_with_the_parent() -> None:
    """Stdin ends when the parent does, also by kill -9: nobody is left to take what would be made."""
    while os.read(0, 1):
        pass
    os._exit(1)
