"""What the records of one box prove. Where a candidate shares its process, they prove little alone.

A test has passed when it has one start and one end with outcome *passed*; the box counts as *complete* when, after
all tests, the canaries (if it has any) were seen to fail and *done* came last. Anything that does not fit ends it as
*tampered*.
"""

import json
import re
import secrets
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from engine.runner.report import TestResult
from engine.runner.verdicts import Outcome

_ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-_])")


def plain(text: str) -> str:
    """``text`` without escape sequences, control characters and those that turn the direction of writing."""
    text = _ANSI.sub("", text).replace("\r\n", "\n")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))


class Tampered(Exception):
    """A record that an honest box cannot send."""


class NotTransferable(Exception):
    """The tests hand over a value that cannot leave their process."""


@dataclass
class Ledger:
    """Takes the records of one box.

    ``every``: all ids of the file, empty while they are being listed; ``chosen``: those to run here, in order.
    """

    every: tuple[str, ...]
    chosen: tuple[str, ...]
    canaries: tuple[str, ...]
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    results: dict[str, TestResult] = field(default_factory=dict)
    running: str = ""  # the test between its start and its end
    stage: str = "waiting"  # the last record that was not about one test
    collected: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # what pytest calls those; it means something when they were listed, without candidate
    skipped: dict[str, str] = field(default_factory=dict)  # by the tests' own marks: id -> reason
    doomed: frozenset[str] = frozenset()  # those that a mark of the tests expects to fail
    problem: str = ""  # why the candidate or the tests could not be loaded
    problem_outcome: Outcome = Outcome.ERROR
    reached: bool = False  # a check of the tests was reached, or they have none of their own to reach
    soft: bool = False  # a comparison was decided by the candidate's own class
    late: bool = False  # the running test has waited for its candidate longer than it may
    loading_s: float = 0.0  # what loading the tests took
    peak_mib: float | None = None
    _imported_s: float = 0.0
    _count: int = 0
    _started_s: float = 0.0
    _ended: int = 0

    @property
    def complete(self) -> bool:
        return self.stage == "done" and not self.problem and self._ended == len(self.chosen) + len(self.canaries)

    def take(self, line: bytes, now_s: float) -> TestResult | None:
        """Enters a record that came at ``now_s``. The result of a test if it ended one. Raises Tampered."""
        record = self._checked(line)
        kind = record["kind"]
        if kind == "start":
            self._start(record, now_s)
        elif kind == "end":
            return self._end(record, now_s)
        elif kind == "beat":
            pass  # a test that asks its candidate a great many things is still at it
        elif kind == "late":
            self.late |= record.get("id") == self.running != ""
        elif kind == "forged":
            raise Tampered(f"the candidate sent {plain(str(record.get('why')))}")
        elif kind == "uncrossable":
            raise NotTransferable(plain(str(record.get("why"))))
        else:
            self._advance(kind, record)
            if kind == "imported":
                self._imported_s = now_s
            elif kind == "collected":
                self.loading_s = now_s - self._imported_s
        return None

    def _checked(self, line: bytes) -> dict[str, Any]:
        """A record must be whole, next in number, and signed; the hello comes before the key is known inside."""
        try:
            record: dict[str, Any] = json.loads(line)
            n, key, kind = record["n"], record["key"], record["kind"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise Tampered("something other than a record was written to the private channel") from None
        if n != self._count or key != (self.key if n else "") or not isinstance(kind, str):
            raise Tampered("a record was forged")
        self._count += 1
        return record

    def _advance(self, kind: str, record: dict[str, Any]) -> None:
        follows = {
            "hello": ("waiting",),
            "importing": ("hello",),
            "imported": ("importing",),
            "unimportable": ("importing",),
            "collected": ("imported",),
            "broken": ("imported",),
            "done": ("imported", "collected", "broken"),
        }
        # A test may well stop the whole run (pytest.exit); then it is still running when all is done.
        if (self.running and kind != "done") or self.stage not in follows.get(kind, ()):
            raise Tampered("records came in an order that cannot be")
        if kind == "collected":
            ids = record.get("ids")
            self.collected = tuple(map(str, ids)) if isinstance(ids, list) else ()
            shown = record.get("shown")
            self.shown = tuple(plain(str(name)) for name in shown) if isinstance(shown, list) else ()
            skipped = record.get("skipped")
            self.skipped = {str(k): plain(str(v)) for k, v in skipped.items()} if isinstance(skipped, dict) else {}
            doomed = record.get("doomed")
            self.doomed = frozenset(map(str, doomed)) if isinstance(doomed, list) else frozenset()
            if self.every and self.collected != self.every:
                raise Tampered("the tests that ran are not the tests of the file")
        if kind in ("unimportable", "broken"):
            self.problem = plain(str(record.get("why", "")))
            self.problem_outcome = Outcome.KILLED if record.get("outcome") == Outcome.KILLED else Outcome.ERROR
        if kind == "done" and isinstance(record.get("peak_mib"), float):
            self.peak_mib = record["peak_mib"]
        self.stage = kind

    def _start(self, record: dict[str, Any], now_s: float) -> None:
        order = self.chosen + self.canaries
        ended = self._ended
        if self.stage != "collected" or self.running or ended >= len(order) or record.get("id") != order[ended]:
            raise Tampered("tests were started in an order that cannot be")
        self.running, self._started_s, self.late = order[ended], now_s, False

    def _end(self, record: dict[str, Any], now_s: float) -> TestResult | None:
        name, outcome = self.running, record.get("outcome")
        if not name or record.get("id") != name or outcome not in tuple(Outcome):
            raise Tampered("a test ended that had not started")
        self.running, self._ended = "", self._ended + 1
        if name in self.canaries:
            if outcome not in (Outcome.FAILED, Outcome.ERROR):
                raise Tampered("a test that must fail did not: the candidate has changed how tests are run")
            return None
        self.soft |= record.get("soft") is True
        self.reached |= record.get("reached") is True
        return self.settle(name, Outcome(outcome), str(record.get("why", "")), now_s)

    def settle(self, name: str, outcome: Outcome, why: str, now_s: float) -> TestResult:
        """Enters the result of the test that was started last, also of one that cannot speak for itself."""
        result = TestResult(name, outcome, plain(why), round(max(now_s - self._started_s, 0.0), 3))
        self.results[name] = result
        return result
