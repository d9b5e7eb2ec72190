"""What a run keeps of the comparison of its candidates: where each stands, and what was answered."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.elicitation.answers import Answer
from engine.elicitation.inputs import Input
from engine.elicitation.outcomes import Outcome


@dataclass(frozen=True)
class Standing:
    """What comparing told about one candidate.

    ``group``: the candidates that behave like it, itself included; ``inputs``: on how many they were compared.
    ``examples`` and ``suggested``: with how many of the prompt's examples, and of the suggested tests, it agrees; of
    how many in all. ``key``: for ranking, larger is better.
    """

    group: tuple[int, ...]
    inputs: int
    examples: tuple[int, int] = (0, 0)
    suggested: tuple[int, int] = (0, 0)
    key: tuple[float, ...] = ()


@dataclass(frozen=True)
class Compared:
    """``standings`` by candidate; ``record`` for ``--json``; ``answered``: None where it does not matter.

    What was observed is not kept: it is large, and candidates can be called again.
    """

    standings: Mapping[int, Standing] = field(default_factory=dict)
    record: dict[str, Any] | None = None
    answered: Mapping[Input, Answer | None] = field(default_factory=dict)

    def to_json(self) -> str:
        """What the history keeps, and ``from_json`` reads."""
        return json.dumps(
            {
                "standings": {number: asdict(standing) for number, standing in self.standings.items()},
                "record": self.record,
                "answered": [_answered(given, answer) for given, answer in self.answered.items()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Compared":
        kept = json.loads(text)
        return cls(
            {int(number): _standing(fields) for number, fields in kept["standings"].items()},
            kept["record"],
            dict(map(_read, kept["answered"])),
        )


def _standing(fields: dict[str, Any]) -> Standing:
    inputs: int = fields.pop("inputs")
    return Standing(inputs=inputs, **{name: tuple(value) for name, value in fields.items()})


def _answered(given: Input, answer: Answer | None) -> dict[str, Any]:
    right = None if answer is None else {"outcome": answer.outcome.to_json(), "errors": answer.errors}
    return {"input": given.wire, "origin": given.origin, "right": right}


def _read(kept: dict[str, Any]) -> tuple[Input, Answer | None]:
    given, right = Input.of_wire(kept["input"], kept["origin"]), kept["right"]
    if right is None:
        return given, None
    return given, Answer(given, Outcome.from_json(right["outcome"]), tuple(right["errors"]))
