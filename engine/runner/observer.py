"""What a candidate does on many inputs, seen inside its box: one process after another calls it and tells.

This process never runs the candidate itself. It forks one that imports it and works through the inputs; where an input
hangs or ends the process, that input has its outcome and the next process goes on behind it. All are run twice, the
second time backwards, by a fresh import, another seed and (where sets are used) another order of hashes: what differs
depends on chance, or on what was called before. What a process says is data about itself. Standard library only.
"""

import contextlib
import io
import json
import os
import random
import re
import select
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.runner import stub
from engine.runner.encoding import encode
from engine.runner.split.module import NAME, import_solution
from engine.runner.task import Observation

MEMORY = 512 << 20  # bytes that one of these processes may take: a large result is an exception, not an end
_PRINTED = 4000  # characters of print that are kept
_PRINTS = 1 << 20  # more than that ends the call
_MOST_ENDED = 3  # inputs on which it may hang or end; the rest is not tried
_LINE = 4 << 20  # bytes of one outcome
_IMPORTING = -1  # the number of the import, among those of inputs
_MESSAGE = 200
_DESCRIPTORS = 256

Say = Callable[..., None]


class Flood(BaseException):
    """It prints without end; no handler of the candidate's is to catch that."""


class Prints(io.TextIOBase):
    """What is printed, the first part of it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.kept, self._size = "", 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.kept) < _PRINTED:
            self.kept += text[: _PRINTED - len(self.kept)]
        self._size += len(text)
        if self._size > _PRINTS:
            raise Flood
        return len(text)


def perform(task: Observation, say: Say) -> None:
    """Tells one record ``outcome`` for every input, in any order, then ``done``."""
    watcher = Watcher(task)
    first = watcher.run(range(len(task.inputs)), seed=0)
    calm = [number for number, outcome in reversed(first.items()) if outcome["kind"] not in ("timeout", "killed")]
    again = watcher.run(calm, seed=1) if task.twice else {}
    for number in range(len(task.inputs)):
        outcome = first.get(number, {"kind": "skipped"})
        other = again.get(number, {"kind": "skipped"})
        decided = not {outcome["kind"], other["kind"]} & {"skipped", "timeout"}
        if decided and _telling(outcome) != _telling(other):
            outcome = {**outcome, "unstable": True}
        say("outcome", number=number, outcome=outcome)
    say("done")


def _telling(outcome: dict[str, Any]) -> str:
    """What two runs must have in common; addresses in messages and reprs do not count, nor the order of a set."""
    return json.dumps({name: _sorted(part) for name, part in outcome.items() if name != "message"}, sort_keys=True)


def _sorted(wire: Any) -> Any:
    if isinstance(wire, dict):
        return {name: _sorted(part) for name, part in wire.items()}
    if not isinstance(wire, list):
        return wire
    if wire[:1] == ["opaque"]:
        return [wire[1], _sorted(wire[3])]
    if wire[:1] in (["set"], ["frozenset"]):
        return [wire[0], *sorted(map(_sorted, wire[1:]), key=repr)]
    return [_sorted(part) for part in wire]


class Watcher:
    """Runs the inputs in processes of their own and keeps the clock."""

    def __init__(self, task: Observation):
        self._task = task
        self._limit_s = task.call_s

    def run(self, order: Sequence[int], seed: int) -> dict[int, dict[str, Any]]:
        """Outcomes by number; those that were not tried are missing."""
        self._ended = 0
        outcomes: dict[int, dict[str, Any]] = {}
        left = list(order)
        while left and self._ended < _MOST_ENDED:
            stopped = self._some(left, seed, outcomes)
            if stopped == _IMPORTING:
                break
            left = left[left.index(stopped) + 1 :] if stopped is not None else []
        if _IMPORTING in outcomes:  # it cannot be imported: the same for all
            return dict.fromkeys(order, outcomes[_IMPORTING])
        return outcomes

    def _some(self, left: Sequence[int], seed: int, outcomes: dict[int, dict[str, Any]]) -> int | None:
        """One process for ``left``, in this order. The input on which it was ended, or None."""
        source, sink = os.pipe()
        process = os.fork()
        if process == 0:
            _become(sink, self._task, left, seed)
        os.close(sink)
        with contextlib.suppress(OSError):  # it has done so itself already
            os.setpgid(process, process)
        at = _IMPORTING
        why = "killed"
        with open(source, "rb", 0) as pipe:
            reader = _Lines(pipe)
            try:
                for at in (_IMPORTING, *left):
                    limit = self._limit_s * (5 if at == _IMPORTING else 1)
                    outcome = reader.next(limit)
                    if outcome is None:
                        break
                    if at != _IMPORTING or outcome.get("kind") != "imported":
                        outcomes[at] = outcome
                    if at == _IMPORTING and at in outcomes:
                        return at
                else:
                    return None
            except TimeoutError:
                why = "timeout"
            finally:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
        self._ended += 1
        outcomes[at] = {"kind": why}
        return at


class _Lines:
    """Outcomes as they come; what is no outcome is the same as an end."""

    def __init__(self, pipe: Any):
        self._pipe, self._data = pipe, b""

    def next(self, seconds: float) -> dict[str, Any] | None:
        """Raises TimeoutError."""
        end = time.monotonic() + seconds
        while b"\n" not in self._data:
            ready, _, _ = select.select([self._pipe], [], [], max(end - time.monotonic(), 0.0))
            if not ready:
                raise TimeoutError
            block = self._pipe.read(1 << 16)
            if not block or len(self._data) > _LINE:
                return None
            self._data += block
        line, _, self._data = self._data.partition(b"\n")
        try:
            outcome = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return outcome if isinstance(outcome, dict) and isinstance(outcome.get("kind"), str) else None


def _become(sink: int, task: Observation, left: Sequence[int], seed: int) -> None:
    """The forked process: from here on everything belongs to the candidate. Never returns."""
    os.setpgid(0, 0)
    os.closerange(3, sink)
    os.closerange(sink + 1, _DESCRIPTORS)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if seed and _uses_hashes(task.solution):
        os.set_inheritable(sink, True)
        os.environ["PYTHONHASHSEED"] = str(seed)
        path = os.pathsep.join(sys.path)
        code = f"import sys; sys.path[:] = {path!r}.split({os.pathsep!r}); from engine.runner import observer; "
        code += f"observer.again({sink})"
        given = json.dumps([vars(task), list(left), seed]).encode()
        task_file = os.memfd_create("task")
        os.write(task_file, given)
        os.lseek(task_file, 0, os.SEEK_SET)
        os.dup2(task_file, 0)
        os.execv(sys.executable, [sys.executable, "-s", "-P", "-B", "-S", "-c", code])
    _work(sink, task, left, seed)


def again(sink: int) -> None:
    """Where a process begins that has another order of hashes."""
    task, left, seed = json.loads(sys.stdin.buffer.read())
    _work(sink, Observation(**task), left, seed)


def _uses_hashes(text: str) -> bool:
    """Whether what it gives may depend on the order of hashes, or on addresses."""
    return re.search(r"set\b|\bhash\b|\bid\(|\{[^{}:]+[,}]|\{[^{}:]+\bfor\b", text) is not None


def _work(sink: int, task: Observation, left: Sequence[int], seed: int) -> None:
    try:
        stub.limit("RLIMIT_AS", MEMORY)
        caller = _Caller(task, seed)
        _write(sink, caller.problem or {"kind": "imported"})
        for number in [] if caller.problem else left:
            _write(sink, caller.outcome(task.inputs[number]))
    except BaseException:  # whatever it is, the other process notes that this one has ended
        pass
    finally:
        os._exit(0)


def _write(sink: int, outcome: dict[str, Any]) -> None:
    data = json.dumps(outcome).encode() + b"\n"
    while data:
        data = data[os.write(sink, data) :]


class _Caller:
    """The candidate, imported, and what becomes of a call. ``problem``: the outcome of all, where it is known."""

    def __init__(self, task: Observation, seed: int):
        self.problem: dict[str, Any] | None = None
        self._path = Path.cwd() / f"{NAME}.py"
        self._text = task.solution
        self._module: types.ModuleType | None = None
        self._names: dict[str, Any] = {}
        sys.argv = [str(self._path)]
        sys.path.insert(0, str(self._path.parent))
        warnings.simplefilter("ignore")
        random.seed(seed)
        if all("given" in given for given in task.inputs):
            self._path.write_bytes(self._text.encode("utf-8", "surrogatepass"))
            return
        sys.stdout = sys.stderr = Prints()
        try:
            exec(task.setup, self._names)
            self._module = import_solution(self._path, self._text)
        except BaseException as error:
            self.problem = _raised(error) | {"kind": "broken"}

    def outcome(self, given: dict[str, Any]) -> dict[str, Any]:
        if "given" in given:
            return self._as_program(given["given"])
        printed = sys.stdout = sys.stderr = Prints()
        try:
            return self._called(given["calls"]) | {"printed": printed.kept}
        except Flood:
            return {"kind": "flood"}
        except BaseException as error:
            if isinstance(error, MemoryError):
                return {"kind": "raised", "type": "MemoryError", "builtin": True, "message": ""}
            return _raised(error) | {"printed": printed.kept}

    def _called(self, calls: list[Any]) -> dict[str, Any]:
        value: Any = None
        changed: list[Any] = []
        target: Any = self._module
        for at, (name, written) in enumerate(calls):
            function = getattr(target, name, None)
            if not callable(function):
                return {"kind": "missing"}
            taken: Any = eval(f"_take({', '.join(written)})", {**self._names, "_take": lambda *a, **k: (a, k)})
            before = [encode(argument) for argument in taken[0]]
            value = function(*taken[0], **taken[1])
            if isinstance(value, types.CoroutineType):
                value = _awaited(value)
            if at == 0 and len(calls) > 1:
                target = value
                continue
            after = [encode(argument) for argument in taken[0] if not hasattr(type(argument), "__next__")]
            changed = [[i, now] for i, (was, now) in enumerate(zip(before, after, strict=False)) if was != now]
        return {"kind": "value", "value": encode(value), "changed": changed}

    def _as_program(self, given: str) -> dict[str, Any]:
        from engine.runner import program  # only for programs

        ended = program.run(self._path, given)
        if ended.why.startswith("it prints"):
            return {"kind": "flood"}
        if ended.code:
            last = ended.errors.rstrip().rpartition("\n")[2][:_MESSAGE]
            name = last.partition(":")[0]
            return {"kind": "raised", "type": name if name.isidentifier() else "exit", "builtin": True, "message": last}
        return {"kind": "output", "printed": ended.output[:_PRINTED], "whole": len(ended.output) <= _PRINTED}


def _awaited(value: Any) -> Any:
    import asyncio  # what few candidates need, and it takes a while

    return asyncio.run(value)


def _raised(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    try:
        message = str(error)[:_MESSAGE]
    except BaseException:
        message = ""
    builtin = kind.__module__ == "builtins"
    return {"kind": "raised", "type": kind.__name__, "builtin": builtin, "message": message}
