"""The candidate's side: imports it, does what the tests ask, and passes on what it prints and what it warns of."""

import io
import json
import os
import random
import sys
import warnings
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Any, NoReturn

from engine.runner import program
from engine.runner.split import chance
from engine.runner.split.crossing import LinkBroken, Transfer
from engine.runner.split.link import ROOT, Link, duplicate, innermost_line, operate
from engine.runner.split.mirrors import content_base
from engine.runner.split.module import NAME, import_solution
from engine.runner.split.values import Garbled

_SENT_AT_ONCE = 1 << 16  # bytes of print that do not wait for the next answer


class Prints(io.RawIOBase):
    """What the candidate prints, kept until the next message takes it along."""

    def __init__(self, stream: str, printed: list[list[str]], tell: Any):
        self._stream, self._sent, self._tell = stream, printed, tell
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._sent.append([self._stream, self._decoder.decode(bytes(data))])
        self._size += len(data)
        if self._size > _SENT_AT_ONCE:
            self._size = 0
            self._tell()
        return len(data)


class CandidateLink(Link):
    """What is asked here comes from the tests, and is done."""

    accepts_functions = True

    def __init__(self, source: int, sink: int, text: str):
        super().__init__(source, sink, first=1)
        self._text, self._path = text, Path.cwd() / f"{NAME}.py"
        self._printed: list[list[str]] = []
        self._warned: list[tuple[type, str, int]] = []

    def run(self) -> NoReturn:
        """Until the tests are through; the process ends with them."""
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.BufferedWriter(Prints(name, self._printed, self._tell)), "utf-8", "backslashreplace")
            for name in ("stdout", "stderr")
        )
        sys.argv = [str(self._path)]
        sys.path.insert(0, str(self._path.parent))
        warnings.simplefilter("always")
        warnings.showwarning = self._show_warning  # type: ignore[assignment]
        random.seed(0)
        try:
            while True:
                with self._lock:
                    question = self.receive()
                self.answer(question)
        except LinkBroken:
            os._exit(0)

    def serve(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        match operation, arguments:
            case "import", []:
                module = import_solution(self._path, self._text)
                self._mine[ROOT], self._my_numbers[id(module)] = module, ROOT
                return None
            case "get", [target, name]:
                return getattr(target, name)
            case "set", [target, name, value]:
                return setattr(target, name, value)
            case "del", [target, name]:
                return delattr(target, name)
            case "operator", [name, target, given, keywords]:
                return operate(target, name, given, keywords)
            case "content", [target]:
                return _content(target)
            case "copy" | "deepcopy", [target]:
                return duplicate(target, operation == "deepcopy")
            case "dir", [target]:
                return dir(target)
            case "script", [given]:
                return self._run_script(given)
        raise Garbled(f"a question that is none: {operation}")

    def take_extras(self, message: dict[str, Any]) -> None:
        for name, state in message.get("chance", {}).items():
            chance.take(name, self.get(state))

    def line_of(self, error: BaseException) -> int | None:
        return innermost_line(error, str(self._path))

    def news(self, transfer: Transfer) -> dict[str, Any]:
        printed = self._printed_so_far()
        warned, self._warned[:] = list(self._warned), []
        written = [[self.put(category, transfer), text, line] for category, text, line in warned]
        return ({"printed": printed} if printed else {}) | ({"warned": written} if written else {})

    def _printed_so_far(self) -> list[list[str]]:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, ValueError, OSError):
                pass  # the candidate has put something else there, or closed it
        printed, self._printed[:] = list(self._printed), []
        return printed

    def _tell(self) -> None:
        """More has been printed than should wait."""
        printed, self._printed[:] = list(self._printed), []
        self._write(json.dumps({"printed": printed}).encode() + b"\n")

    def _show_warning(self, message: Any, category: type, filename: str, lineno: int, *rest: Any) -> None:
        self._warned.append((category, str(message), lineno))

    def _run_script(self, given: str) -> tuple[str, int, str]:
        """The candidate as a program: what it prints to standard output, its exit code, and what ended it."""
        self._path.write_bytes(self._text.encode("utf-8", "surrogatepass"))
        ended = program.run(self._path, given)
        self._printed += [[name, text] for name, text in (("stdout", ended.output), ("stderr", ended.errors)) if text]
        return ended.output, ended.code, ended.why


def _content(target: Any) -> Any:
    """An exact copy of the built-in container inside ``target``, past whatever its class makes of it."""
    base: Any = content_base(type(target))
    if base is None:
        raise Garbled("an object without content")
    if issubclass(base, dict):
        return dict(dict.items(target))
    items = base.__iter__(target)
    return base(items) if base in (set, bytearray) else list(items)
