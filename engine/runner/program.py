"""The candidate as a program: a process of its own with real pipes, inside the candidate's box."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

OUTPUT = 4 << 20  # bytes of output that are looked at
_ERRORS = 64 << 10  # bytes of error output that are kept, from the end
_AFTER_S = 0.5  # how long a child that it left behind may hold the pipes


@dataclass(frozen=True)
class Ended:
    """What a program printed, its exit code, and in words what ended it; empty where it ended by itself."""

    output: str
    errors: str
    code: int
    why: str


def run(path: Path, given: str) -> Ended:
    """Runs the file at ``path`` with ``given`` on its standard input, to its end. The service keeps the clock."""
    process = subprocess.Popen(
        [sys.executable, "-s", "-B", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=path.parent,
        env=_surroundings(path.parent),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = _Kept(process.stdout, OUTPUT, process), _Kept(process.stderr, 0, process)
    threading.Thread(target=_feed, args=(process.stdin, given), daemon=True).start()
    code = process.wait()
    for kept in (output, errors):
        kept.join(_AFTER_S)
    stderr = bytes(errors.data[-_ERRORS:]).decode("utf-8", "replace")
    if output.too_much:
        why = f"it prints more than {OUTPUT >> 20} MiB"
    elif code < 0:
        why = f"it was ended by {signal.Signals(-code).name}"
    else:
        why = _what_ended(stderr, str(path)) if code else ""
    return Ended(bytes(output.data[:OUTPUT]).decode("utf-8", "replace"), stderr, code, why)


def _surroundings(folder: Path) -> dict[str, str]:
    """The box's own variables, and the packages that are shown to the candidate."""
    hidden = {str(folder), "", os.environ.get("PYTHONPATH")}
    packages = [entry for entry in sys.path if entry not in hidden]
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_CURRENT_TEST")}
    return {**kept, "PYTHONPATH": os.pathsep.join(packages)}


def _feed(pipe: IO[bytes], given: str) -> None:
    with contextlib.suppress(OSError), pipe:  # it need not read all of its input
        pipe.write(given.encode("utf-8", "surrogatepass"))


class _Kept(threading.Thread):
    """Drains a pipe. More than ``most`` bytes (0: any number, of which the last are kept) ends the program."""

    def __init__(self, pipe: IO[bytes], most: int, process: subprocess.Popen[bytes]):
        super().__init__(daemon=True)
        self._pipe, self._most, self._process = pipe, most, process
        self.data, self.too_much = bytearray(), False
        self.start()

    def run(self) -> None:
        with self._pipe:
            while block := os.read(self._pipe.fileno(), 1 << 16):
                self.data += block
                if self._most and len(self.data) > self._most:
                    self.too_much = True
                    self._process.kill()
                    return
                if not self._most:
                    del self.data[: -2 * _ERRORS]


def _what_ended(errors: str, path: str) -> str:
    """The last line of a traceback, with the line of the candidate that it names last."""
    last = errors.rstrip().rpartition("\n")[2]
    lines = re.findall(rf'File "{re.escape(path)}", line (\d+)', errors)
    if not lines or not re.match(r"[\w.]+(: |$)", last):
        return ""
    return f"{last} (line {lines[-1]} of the candidate)"
