"""Events as JSON lines, for ``--progress jsonl``, and parts of messages as JSON, for the history."""

import json
from typing import Any, TypeVar

from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from engine.contract.events import Event

_Kind = TypeVar("_Kind")

_converter = make_converter()
configure_tagged_union(Event, _converter, tag_name="event")


def event_to_dict(event: Event) -> dict[str, Any]:
    """The event's fields and its name under ``event``; only JSON types inside."""
    fields: dict[str, Any] = _converter.unstructure(event, unstructure_as=Event)
    return fields


def event_to_line(event: Event) -> str:
    return json.dumps(event_to_dict(event), ensure_ascii=False)


def event_from_line(line: str) -> Event:
    return _converter.structure(json.loads(line), Event)  # type: ignore[arg-type]


def part_to_json(part: Any) -> str:
    """A request, a model choice, metrics and other parts of messages, for whoever keeps them. ASCII only."""
    return json.dumps(_converter.unstructure(part))


def part_from_json(text: str, kind: type[_Kind]) -> _Kind:
    """What ``part_to_json`` wrote, in any release: unknown fields are dropped, missing ones take their defaults."""
    return _converter.structure(json.loads(text), kind)
