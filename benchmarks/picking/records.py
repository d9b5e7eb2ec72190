"""The measurements, one problem per line, so that a run that was killed can continue."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cattrs

from engine.contract import BasslineError
from engine.runner.verdicts import Verdict

OURS, PEER = "ours", "llama.cpp"


@dataclass(frozen=True)
class Outcome:
    """One candidate of a trial. ``finished_s``: seconds from Generate to its last token. Empty ``verdict``: no code."""

    finished_s: float
    tokens: int
    mean_logprob: float | None
    verdict: str

    @property
    def passed(self) -> bool:
        return self.verdict == Verdict.PASS


@dataclass(frozen=True)
class Trial:
    """One side's answers to one problem. Seconds of wall time since Generate, tests included.

    ``first_pass_s``: until the runner said *pass* for the first time; None when no candidate passed. ``ended_s``: until
    all verdicts were there. ``outcomes`` in the order of the candidates' numbers, without those that were stopped.
    ``width``: most candidates that were decoded at a time, 0 where a side does not say.
    """

    side: str
    n: int
    turn: int
    first_pass_s: float | None
    ended_s: float
    outcomes: list[Outcome]
    width: int = 0


@dataclass(frozen=True)
class Record:
    """All about one problem. ``rate``: per side, which of its untimed answers passed; ``others_load`` in cores."""

    task: str
    rate: dict[str, list[bool]]
    trials: list[Trial]
    others_load: float
    void: bool
    seconds: float

    def of(self, side: str, n: int) -> list[Trial]:
        """One trial per turn."""
        return [trial for trial in self.trials if (trial.side, trial.n) == (side, n)]


class Records:
    """A file of JSON lines: the settings first, then one record a line, on the disk before the next one begins."""

    def __init__(self, path: Path, settings: dict[str, Any], *, resume: bool):
        """Raises BasslineError when records are there and nobody said to go on, or when they were made otherwise."""
        self._path = path
        self.done: dict[str, Record] = {}
        lines = _whole_lines(path)
        if lines and not resume:
            raise BasslineError(f"{path} holds an earlier run; add --resume to go on with it, or remove it.")
        if lines:
            earlier = json.loads(lines[0])
            changed = [name for name in settings if earlier.get(name) != settings[name]]
            if changed:
                raise BasslineError(f"{path} was measured with other {', '.join(changed)}; take another --json file.")
            records = (cattrs.structure(json.loads(line), Record) for line in lines[1:])
            self.done = {record.task: record for record in records}
        path.write_text("".join(line + "\n" for line in lines or [json.dumps(settings)]), encoding="utf-8")

    def add(self, record: Record) -> None:
        """A problem that was measured before is measured again: the last record counts."""
        self.done[record.task] = record
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")

    def missing(self, tasks: Iterable[str]) -> list[str]:
        """Those that were not measured yet, or while the machine was busy."""
        return [task for task in tasks if task not in self.done or self.done[task].void]


def _whole_lines(path: Path) -> list[str]:
    """Without the last one where a kill came in between."""
    if not path.exists():
        return []
    return path.read_text(encoding="utf-8").split("\n")[:-1]
