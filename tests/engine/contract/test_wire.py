"""Every event crosses a JSON line unchanged, and no message changes once it is made."""

import dataclasses
import json
from typing import Any, get_args

import pytest

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Close,
    Closed,
    Event,
    Generate,
    Load,
    LoadFailed,
    Loading,
    Message,
    Metrics,
    ModelChoice,
    PromptProgress,
    Ready,
    Request,
    RunFinished,
    RunStarted,
    Sampling,
    Speculation,
    StepDone,
    TextAdded,
    Turn,
)
from engine.contract.wire import event_from_line, event_to_dict, event_to_line

HOSTILE = "a\r\nb\u2028c\u00a0\ufeff\x00\x1b[31m\"\\ 'é😀\u202e\n"
METRICS = Metrics(0.1, None, 2.5, 100.0, 1.5, None, 2.0, 0.75, 12, "cpu", "int8", "suffix", "fixed:4", "coupled")
FULL = Request(
    prompt=HOSTILE,
    seed=2**63 - 1,
    candidates=3,
    mode="completion",
    sampling=Sampling(temperature=0.0, top_p=0.5, top_k=40, max_tokens=7, stop=("\n\n", "STOP")),
    speculation=Speculation(drafter="suffix", policy="fixed:4", acceptance="rejection"),
    time_budget_s=1.5,
    overrides={7: Sampling(temperature=1.1, min_p=0.1, code_stop="block")},
    first_candidate=7,
    goal="first",
    width=2,
)
TURNED = Request("and now in C", 0, turns=(Turn("user", HOSTILE), Turn("assistant", "```\nx\n```")))

REPAIRS = Request("p", 0, openings={2: (Turn("assistant", HOSTILE), Turn("user", "no"))})

MESSAGES: list[Message] = [
    Load(ModelChoice()),
    Load(ModelChoice("a model", "a draft", "float32", "cuda:1", True)),
    Generate("r", Request("p", 0)),
    Generate("r", FULL),
    Generate("r", TURNED),
    Cancel(),
    Cancel("r"),
    Cancel("r", 3),
    Generate("r", REPAIRS),
    Add("r", 8),
    Add("r", 1, (Turn("assistant", HOSTILE), Turn("user", "no"))),
    Close(),
]

EVENTS: list[Event] = [
    Loading("download", 3, 2**40),
    Ready("m", "cpu", "int8", 32768, "d", HOSTILE),
    LoadFailed("why", "details", True),
    RunStarted("r", 12, (1, 2, 3), 7),
    PromptProgress("r", 1, 2),
    TextAdded("r", 1, HOSTILE, 3, 0.1 + 0.2),
    StepDone("r", 1, 2, 3, 4, 5, 6.5),
    CandidateFinished("r", 1, "done", "stop", HOSTILE, 3, 2, 1, None, 1.5),
    CandidateFinished("r", 1, "cut", "length", "", 3, 2, 1, -0.123456789012345, 1.5),
    RunFinished("r", "finished", METRICS),
    RunFinished("r", "refused", None, "why", "details"),
    Closed(),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_events(event: Event) -> None:
    line = event_to_line(event)
    assert "\n" not in line
    assert event_from_line(line) == event


def test_no_kind_is_left_out() -> None:
    assert {type(message) for message in MESSAGES} == set(get_args(Message))
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_a_line_names_its_event_and_its_fields(event: Event) -> None:
    fields: dict[str, Any] = json.loads(event_to_line(event))
    assert fields.pop("event") == type(event).__name__
    assert set(fields) == {field.name for field in dataclasses.fields(event)}


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_only_json_types_inside(event: Event) -> None:
    def plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(isinstance(k, str) and plain(v) for k, v in value.items())
        if isinstance(value, list | tuple):
            return all(map(plain, value))
        return value is None or type(value) in (str, int, float, bool)

    assert plain(event_to_dict(event))


@pytest.mark.parametrize("value", [*MESSAGES, *EVENTS], ids=lambda v: type(v).__name__)
def test_frozen(value: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.run = "other"
