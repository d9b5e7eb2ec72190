"""What a candidate did on one input, and what of it a question can be about."""

import json
from dataclasses import dataclass
from typing import Any

from engine.elicitation import values
from engine.elicitation.values import Wire

KINDS = ("value", "output", "raised", "timeout", "killed", "flood", "missing", "broken", "skipped")
_WORDS = {
    "timeout": "does not end in time",
    "killed": "ends the process",
    "flood": "prints without end",
    "missing": "does not define it",
    "broken": "cannot be imported",
    "skipped": "was not tried",
}
# Mistakes in a program rather than answers to an input.
_MISHAPS = frozenset(
    """
    TypeError AttributeError NameError UnboundLocalError RecursionError MemoryError ImportError ModuleNotFoundError
    KeyError IndexError ZeroDivisionError
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Outcome:
    """``kind``: one of KINDS. ``value`` and ``changed`` (position of an argument, what it is afterwards) are data, see
    ``values``; ``error`` is the type of what it raised, ``own`` that it is no built-in one. ``unstable``: another run
    gave something else.
    """

    kind: str
    value: Wire = None
    changed: tuple[tuple[int, Wire], ...] = ()
    printed: str = ""
    error: str = ""
    message: str = ""
    own: bool = False
    whole: bool = True
    unstable: bool = False

    @classmethod
    def from_json(cls, text: str) -> "Outcome":
        """Whatever a box says: what cannot be is *killed*, for the candidate has spoken in its place."""
        try:
            fields: dict[str, Any] = json.loads(text)
            kind = fields["kind"]
            changed = tuple((at, wire) for at, wire in fields.get("changed", ()))
            wires = [fields.get("value"), *(wire for _, wire in changed)]
            if kind not in KINDS or not all(map(values.is_well_formed, wires)):
                raise ValueError
            if not all(type(at) is int and at >= 0 for at, _ in changed):
                raise ValueError
            return cls(
                kind,
                fields.get("value"),
                changed,
                str(fields.get("printed", "")),
                str(fields.get("type", "")),
                str(fields.get("message", "")),
                kind == "raised" and fields.get("builtin") is not True,
                fields.get("whole", True) is True,
                fields.get("unstable") is True,
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls("killed")

    def to_json(self) -> str:
        """What ``from_json`` reads."""
        fields = {
            "kind": self.kind,
            "value": self.value,
            "changed": self.changed,
            "printed": self.printed,
            "type": self.error,
            "message": self.message,
            "builtin": not self.own,
            "whole": self.whole,
            "unstable": self.unstable,
        }
        return json.dumps(fields)

    @property
    def subject(self) -> str:
        """What there is to see: *value*, *changes* (of arguments), *prints*, *error*, *nothing*, or empty."""
        if self.kind == "value":
            if self.value is not None:
                return "value"
            return "changes" if self.changed else "prints" if self.printed else "nothing"
        return {"output": "prints", "raised": "error"}.get(self.kind, "")

    @property
    def mishap(self) -> bool:
        """A mistake in the program rather than its answer to this input."""
        return not self.subject or self.error in _MISHAPS

    @property
    def decides(self) -> bool:
        """Whether it can be compared with others and be written as a test."""
        if self.unstable or not self.whole:
            return False
        if self.subject == "value":
            return values.decides(self.value)
        if self.subject == "changes":
            return all(values.decides(wire) for _, wire in self.changed)
        return bool(self.subject)

    def like(self, other: "Outcome") -> bool:
        """Whether a test could not tell them apart. All errors are alike: which one is right is seldom known."""
        if self.subject != other.subject or not (self.decides and other.decides):
            return self.kind == other.kind and not self.subject and not self.unstable and not other.unstable
        match self.subject:
            case "value":
                return values.same(self.value, other.value)
            case "changes":
                mine, theirs = self.changed, other.changed
                return [at for at, _ in mine] == [at for at, _ in theirs] and all(
                    values.same(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True)
                )
            case "prints":
                return printed(self.printed) == printed(other.printed)
        return True

    @property
    def words(self) -> str:
        """As a question lists it: a value, or a clause."""
        match self.subject:
            case "value":
                return values.show(self.value) + (" and changes its argument" if self.changed else "")
            case "changes":
                return "changes its argument to " + ", ".join(values.show(wire) for _, wire in self.changed)
            case "prints":
                return f"prints {self.printed.rstrip()!r}" if self.kind == "value" else repr(self.printed.rstrip())
            case "error":
                return f"raises {self.error}"
            case "nothing":
                return "None"
        return _WORDS[self.kind]


def printed(text: str) -> str:
    """Print without what no reader sees."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
