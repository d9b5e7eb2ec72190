"""The conversation: one side asks, the other answers, and may ask in turn before it does.

One JSON object a line: ``{"ask": n, ...}`` or ``{"answer": n, ...}``. Each also carries what the other side must know
by then: new objects and containers, changed ones, and those that nobody here needs any more.
"""

import copy
import itertools
import json
import os
import sys
import threading
import time
import traceback
from abc import abstractmethod
from typing import Any

from engine.runner.split.crossing import Crossing, LinkBroken, Transfer
from engine.runner.split.exceptions import notes_of, set_notes
from engine.runner.split.shared import kind_named
from engine.runner.split.values import CannotCross, Garbled

LONGEST = 16 << 20  # bytes of one message
DEEPEST_ASK = 400  # questions inside questions
_FRAMES_PER_ASK = 100  # Python frames that one of them takes, which are not the tests' or the candidate's to pay for
ROOT = 0  # the number of the candidate's module on its own side


class Link(Crossing):
    """One end. ``ask`` puts a question and waits for its answer; ``serve``, the subclass's, is what may be asked."""

    def __init__(self, source: int, sink: int, first: int):
        super().__init__(first)
        self._source, self._sink = os.fdopen(source, "rb", 1 << 16), sink
        self._lock, self._pid = threading.RLock(), os.getpid()
        self._questions = itertools.count(1)
        self._depth = 0
        self._dropped: list[int] = []  # containers that nobody here holds any more, to be told
        self.questions = 0
        self.bookkeeping_s = 0.0  # spent on writing and reading messages, so far
        self._waited_s, self._waiting_since = 0.0, 0.0

    # What a side adds to it.

    @abstractmethod
    def serve(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        """Answer a question of the other side."""

    def news(self, transfer: Transfer) -> dict[str, Any]:
        """What the next message carries besides the question or the answer."""
        return {}

    def take_extras(self, message: dict[str, Any]) -> None:
        """Takes what a message carries besides. It may raise what the answer then raises."""

    def waited_s(self) -> float:
        """Seconds that this side has waited for the other so far. May be asked in another thread."""
        since = self._waiting_since
        return self._waited_s + (time.monotonic() - since if since else 0.0)

    # Asking and answering.

    def ask(self, operation: str, *arguments: Any) -> Any:
        """The answer, or what it raises. Raises CannotCross when an argument has no form on the wire."""
        with self._lock:
            if self._depth >= DEEPEST_ASK:
                raise RecursionError("maximum recursion depth exceeded between the tests and the candidate")
            number = next(self._questions)
            self.questions += 1
            limit = sys.getrecursionlimit()
            self._depth += 1
            sys.setrecursionlimit(limit + _FRAMES_PER_ASK)
            try:
                self._send({"ask": number, "op": operation}, arguments)
                return self._until(number)
            finally:
                self._depth -= 1
                sys.setrecursionlimit(limit)

    def _until(self, number: int) -> Any:
        while True:
            message = self.receive()
            if "ask" in message:
                self.answer(message)
            elif message.get("answer") == number:
                return self._result(message)
            elif "answer" in message:
                self.severed("an answer to a question that was not asked")

    def _result(self, message: dict[str, Any]) -> Any:
        if "no" in message:
            raise CannotCross(str(message["no"])[:500])
        value = self._decode(message, message.get("value"))
        self.take_extras(message)
        if not message.get("raised"):
            return value
        if not isinstance(value, BaseException):
            self.severed("something raised that is no exception")
        if isinstance(message.get("at"), int):
            object.__setattr__(value, "_bassline_at", message["at"])
        if isinstance(message.get("notes"), list):  # one that has crossed before may have got more
            set_notes(value, message["notes"])
        raise value

    def answer(self, message: dict[str, Any]) -> None:
        """Serves one question of the other side."""
        reply: dict[str, Any] = {"answer": message["ask"]}
        value: Any
        try:
            with self._lock:
                arguments = self._decode(message, message.get("value"))
                self.take_extras(message)
            value = self._serve(str(message.get("op")), arguments)
        except LinkBroken:
            raise
        except BaseException as error:
            value, reply["raised"] = error, True
            line = self.line_of(error)
            if line is not None:
                reply["at"] = line
            if notes := notes_of(error):
                reply["notes"] = notes
        with self._lock:
            try:
                self._send(reply, value)
            except (CannotCross, RecursionError, MemoryError) as why:
                self._send({"answer": message["ask"], "no": str(why) or type(why).__name__}, None, bare=True)

    def _serve(self, operation: str, arguments: tuple[Any, ...]) -> Any:
        """Asked in the middle of a message, this side's own code must still see comparisons as they are."""
        before, self.decoding = self.decoding, False
        try:
            return self.serve(operation, arguments)
        finally:
            self.decoding = before

    def line_of(self, error: BaseException) -> int | None:
        return None

    # Messages.

    def _send(self, message: dict[str, Any], value: Any, bare: bool = False) -> None:
        if os.getpid() != self._pid:
            os._exit(1)  # the candidate forked, and its child has come back into this code
        transfer, start = Transfer(), time.monotonic()
        if not bare:
            try:
                message["value"] = self.put(value, transfer)
                self._enclose(message, transfer)
                data = self._line(message)
            except BaseException:
                self._take_back(transfer)
                raise
            self._commit(transfer)
        else:
            data = self._line(message)
        self.bookkeeping_s += time.monotonic() - start
        self._write(data)

    def _line(self, message: dict[str, Any]) -> bytes:
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(data) > LONGEST:
            raise CannotCross(f"a value of more than {LONGEST >> 20} MiB")
        return data

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._sink, view) :]
        except OSError:
            self.severed("")

    def _enclose(self, message: dict[str, Any], transfer: Transfer) -> None:
        """Adds what has changed, and whatever the message came to mention on the way."""
        message.update(self.news(transfer))
        changed = []
        for number, _, now in self.shared.changes():
            if number not in transfer.waiting:
                changed.append([number, [self.put(part, transfer) for part in now]])
                transfer.contents.append((number, now))
        for number in transfer.waiting:  # grows while it is walked through
            entry = self.shared.entry(number)
            now = entry.kind.read(entry.value)
            extra = self.put(entry.kind.extra(entry.value), transfer)
            transfer.new.append([number, entry.kind.tag, extra, [self.put(part, transfer) for part in now]])
            transfer.contents.append((number, now))
        self._dropped += self.shared.let_go()
        transfer.ended, self._gone = self._gone, []
        transfer.gone = [number for number in transfer.ended if number not in self._theirs]
        parts = {
            "objects": transfer.objects,
            "new": transfer.new,
            "set": changed,
            "drop": list(self._dropped),
            "free": transfer.gone,
        }
        message.update({name: part for name, part in parts.items() if part})

    def _commit(self, transfer: Transfer) -> None:
        for number, content in transfer.contents:
            self.shared.agreed(number, content)
        for number in transfer.gone:
            self._described.pop(number, None)
        self._dropped.clear()

    def receive(self) -> dict[str, Any]:
        """The next message that asks or answers."""
        while True:
            line = self._readline()
            if not line.endswith(b"\n"):
                self.severed("an endless line" if len(line) > LONGEST else "")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self.severed("something that is no message")
            if not isinstance(message, dict):
                self.severed("something that is no message")
            if "ask" in message or "answer" in message:
                return message
            if message.keys() != {"printed"}:
                self.severed("something that is no message")
            self.take_extras(message)

    def _readline(self) -> bytes:
        self._waiting_since = time.monotonic()
        try:
            return self._source.readline(LONGEST + 1)
        finally:
            self._waited_s += time.monotonic() - self._waiting_since
            self._waiting_since = 0.0

    def _decode(self, message: dict[str, Any], wire: Any) -> Any:
        """Takes in the news of a message, then its value."""
        start, before, self.decoding = time.monotonic(), self.decoding, True
        try:
            for number, described in message.get("objects", ()):
                if type(number) is not int or number in self._described or not isinstance(described, dict):
                    raise Garbled("an object's number that cannot be")
                self._described[number] = described
            fill = [(number, self.shared.entry(number), parts) for number, parts in message.get("set", ())]
            made = []  # kept alive until the value holds them
            for number, tag, extra, parts in message.get("new", ()):
                made.append(self.shared.take(number, kind_named(tag), self.get(extra)))
                fill.append((number, self.shared.entry(number), parts))
            for number, entry, parts in fill:
                entry.kind.fill(entry.value, [self.get(part) for part in parts])
                self.shared.agreed(number, entry.kind.read(entry.value))
            value = self.get(wire)
            for number in message.get("drop", ()):
                self.shared.forget(number)
            for number in message.get("free", ()):
                if type(number) is int and number in self._mine:
                    del self._my_numbers[id(self._mine.pop(number))]
            return value
        except (CannotCross, LinkBroken):
            raise
        except Exception as error:
            self.severed(str(error) if isinstance(error, Garbled) else f"a message that means nothing: {error!r}"[:200])
        finally:
            self.decoding = before
            self.bookkeeping_s += time.monotonic() - start


def operate(target: Any, name: str, arguments: tuple[Any, ...], pairs: tuple[tuple[str, Any], ...]) -> Any:
    """``target``'s own operator, as the language looks it up: on the type."""
    keywords = dict(pairs)
    if name == "__call__":
        return target(*arguments, **keywords)
    if name == "__class_getitem__":
        return target.__class_getitem__(*arguments)
    if name == "__exit__" and len(arguments) == 3 and isinstance(arguments[1], BaseException):
        arguments[1].__traceback__ = arguments[1].__traceback__ or arguments[2]
    return getattr(type(target), name)(target, *arguments, **keywords)


def duplicate(target: Any, deep: bool) -> Any:
    return copy.deepcopy(target) if deep else copy.copy(target)


def innermost_line(error: BaseException, path: str) -> int | None:
    """The line of the file ``path`` that the error came through last."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__, None) if frame.filename == path]
    return lines[-1] if lines else None
