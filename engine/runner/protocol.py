"""What the application and the runner service say to each other: one JSON object a line.

``id`` is the caller's own name for a test run; it must be unique among those that are open.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from engine.runner.report import Report, TestResult


@dataclass(frozen=True)
class Probe:
    """Ask what holds on this machine; answered by Isolation."""


@dataclass(frozen=True)
class RunTests:
    """Run a user's ``tests`` on one candidate. Answered by TestStarted, TestProgress ..., and one TestFinished.

    ``consent``: the user has agreed to run without a sandbox, should there be none. ``same_process``: they have
    agreed that these tests share a process with the candidate, should these need it. Both are asked for by
    ConsentNeeded. ``environment``: the folder of a virtual environment whose packages may be used. Times are seconds
    of wall clock; importing the candidate may take five times ``test_timeout_s``, and a test may take five times
    what the slowest passing candidate took for one.
    """

    id: str
    solution: str
    tests: str
    consent: bool = False
    test_timeout_s: float = 2.0
    total_timeout_s: float = 30.0
    same_process: bool = False
    environment: str = ""


@dataclass(frozen=True)
class Observe:
    """See what one candidate does on ``inputs``, without any test. Answered by one Observed, or by ConsentNeeded.

    ``inputs``: JSON, each ``{"calls": [[name, [argument, ...]], ...]}``, where arguments are Python text and the first
    of several calls makes the object whose methods the others are, or ``{"given": text}`` for a program's standard
    input. ``setup``: imports that the arguments need. ``twice``: each is run twice, to find what depends on chance.
    """

    id: str
    solution: str
    inputs: tuple[str, ...]
    setup: str = ""
    consent: bool = False
    environment: str = ""
    call_timeout_s: float = 1.0
    total_timeout_s: float = 5.0
    twice: bool = True


@dataclass(frozen=True)
class CancelTests:
    """End a test run at once; it is answered by its TestFinished (verdict *infra*)."""

    id: str


@dataclass(frozen=True)
class Shutdown:
    """End every box, then the service. Closing its standard input does the same."""


@dataclass(frozen=True)
class Isolation:
    """What holds. ``isolation``: files, network, memory, processes, verdict -> a sentence each.

    ``sealed``: a box was run and kept what it must. ``note``: why not, or empty. ``weak``: the layers that hold less
    than they should. ``words``: what a user should read before anything is run for the first time.
    """

    sealed: bool
    isolation: dict[str, str] = field(default_factory=dict)
    note: str = ""
    weak: tuple[str, ...] = ()
    words: str = ""


@dataclass(frozen=True)
class TestStarted:
    """The tests were read: there are ``total`` of them."""

    id: str
    total: int


@dataclass(frozen=True)
class TestProgress:
    """One test of the run is over."""

    id: str
    result: TestResult


@dataclass(frozen=True)
class ConsentNeeded:
    """Nothing was run. Show ``sentence``; if the user agrees, send the RunTests again with what ``kind`` names.

    ``kind``: *consent* (there is no sandbox here) or *same_process* (these tests need to share the candidate's).
    """

    id: str
    sentence: str
    kind: str = "consent"


@dataclass(frozen=True)
class TestFinished:
    """The one last message of every run, except of one that was answered by ConsentNeeded."""

    id: str
    report: Report


@dataclass(frozen=True)
class Observed:
    """What a candidate did on each input: ``outcomes`` are JSON, in the order of the inputs.

    An outcome has a ``kind``: *value*, *output* (of a program), *raised*, *timeout*, *killed*, *flood* (endless print),
    *missing* (it defines no such name), *broken* (it cannot be imported) or *skipped* (there was no time). ``why``:
    what kept it from being complete, or empty.
    """

    id: str
    outcomes: tuple[str, ...]
    why: str = ""
    seconds: float = 0.0


Request = Probe | RunTests | Observe | CancelTests | Shutdown
Answer = Isolation | TestStarted | TestProgress | ConsentNeeded | TestFinished | Observed

_converter = make_converter()
configure_tagged_union(Request, _converter, tag_name="request")
configure_tagged_union(Answer, _converter, tag_name="answer")


def to_line(message: Request | Answer) -> bytes:
    """One line of ASCII, so that lone surrogates in a model's text survive the trip."""
    union: Any = Request if isinstance(message, Request) else Answer
    return json.dumps(_converter.unstructure(message, unstructure_as=union)).encode() + b"\n"


def request_from_line(line: bytes) -> Request:
    return _converter.structure(json.loads(line), Request)  # type: ignore[arg-type]


def answer_from_line(line: bytes) -> Answer:
    return _converter.structure(json.loads(line), Answer)  # type: ignore[arg-type]
