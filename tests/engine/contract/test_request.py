"""What cannot be is refused with a sentence, at the edges exactly."""

import math
import subprocess
import sys
from typing import Any

import pytest

from engine.contract import (
    Add,
    BadRequest,
    BasslineError,
    Cancel,
    Close,
    Generate,
    Load,
    Mailbox,
    Message,
    ModelChoice,
    Request,
    Sampling,
    Speculation,
    Turn,
)


def request(**changes: Any) -> Request:
    return Request(**({"prompt": "p", "seed": 0} | changes))


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (request, {"prompt": " \n\t"}, "The prompt is empty"),
        (request, {"candidates": 0}, "between 1 and 128, not 0"),
        (request, {"candidates": 129}, "not 129"),
        (request, {"seed": -1}, "The seed"),
        (request, {"seed": 2**63}, "The seed"),
        (request, {"mode": "poem"}, "choose one of chat, completion, fill-in-the-middle"),
        (request, {"time_budget_s": 0}, "time budget"),
        (request, {"time_budget_s": math.inf}, "time budget"),
        (request, {"turns": (Turn("user", "hi"),), "mode": "completion"}, "belong to chat mode"),
        (request, {"openings": {2: (Turn("user", "no"),)}, "mode": "completion"}, "belong to chat mode"),
        (request, {"openings": {2: ()}}, "must end with something that the user says"),
        (request, {"openings": {2: (Turn("user", "no"), Turn("assistant", "ok"))}}, "that the user says"),
        (request, {"openings": {2: (Turn("assistant", "a"), Turn("user", " "))}}, "that the user says"),
        (Add, {"run": "r", "count": 1, "opening": (Turn("assistant", "ok"),)}, "that the user says"),
        (request, {"suffix": "return x"}, "belongs to fill-in-the-middle mode"),
        (request, {"sampling": Sampling(code_stop="function")}, "belongs to completion mode"),
        (request, {"overrides": {2: Sampling(code_stop="function")}}, "belongs to completion mode"),
        (request, {"first_candidate": 0}, "numbered from 1"),
        (request, {"goal": "last"}, "choose all or first"),
        (request, {"width": 129}, "width"),
        (Sampling, {"temperature": -0.1}, "Temperature"),
        (Sampling, {"temperature": math.nan}, "Temperature"),
        (Sampling, {"temperature": 10.1}, "Temperature"),
        (Sampling, {"top_p": 0.0}, "top-p"),
        (Sampling, {"top_p": 1.1}, "top-p"),
        (Sampling, {"top_p": math.nan}, "top-p"),
        (Sampling, {"top_k": -1}, "top-k"),
        (Sampling, {"max_tokens": 0}, "Max tokens"),
        (Sampling, {"stop": ("a", "")}, "stop string is empty"),
        (Sampling, {"min_p": 1.1}, "min-p"),
        (Sampling, {"repetition_penalty": 0.0}, "repetition penalty"),
        (Sampling, {"repetition_penalty": math.nan}, "repetition penalty"),
        (Sampling, {"presence_penalty": -2.1}, "presence penalty"),
        (Sampling, {"frequency_penalty": math.inf}, "frequency penalty"),
        (Sampling, {"code_stop": "poem"}, "choose block, function"),
        (Turn, {"role": "system", "text": "x"}, "by the user or the assistant"),
        (Speculation, {"drafter": ""}, "A drafter cannot be called ''"),
        (Speculation, {"drafter": "Oracle"}, "small letters"),
        (Speculation, {"policy": "fixed:-1"}, "A policy cannot be called 'fixed:-1'"),
        (Speculation, {"policy": "fixed:"}, "as in goodput or fixed:4"),
        (Speculation, {"acceptance": "all ways"}, "A rule cannot be called"),
        (ModelChoice, {"model": ""}, "No model was named"),
        (ModelChoice, {"precision": "int3"}, "one of auto, int8"),
    ],
)
def test_refused(kind: Any, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequest) as caught:
        kind(**fields)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert isinstance(caught.value, BasslineError)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (request, {"candidates": 128}),
        (request, {"mode": "completion", "sampling": Sampling(code_stop="function")}),
        (request, {"seed": 2**63 - 1}),
        (request, {"time_budget_s": 1e-3}),
        (Sampling, {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 1}),
        (Sampling, {"temperature": 10.0, "stop": ("\n",)}),
        (Speculation, {"policy": "fixed:0"}),
        (Speculation, {"policy": "fixed:99"}),
        (Speculation, {"policy": "goodput"}),
        (Speculation, {"drafter": "oracle", "policy": "threshold:0.3", "acceptance": "relaxed"}),
    ],
)
def test_allowed(kind: Any, fields: dict[str, Any]) -> None:
    made = kind(**fields)
    assert {name: getattr(made, name) for name in fields} == fields


A, B = Generate("a", request()), Generate("b", request())


def mailbox_with(*messages: Message) -> Mailbox:
    mailbox = Mailbox()
    for message in messages:
        mailbox.put(message)
    return mailbox


def test_mailbox_keeps_the_order_of_work() -> None:
    mailbox = mailbox_with(A, Load(ModelChoice()), B)
    assert [mailbox.next() for _ in range(3)] == [A, Load(ModelChoice()), B]


def test_mailbox_gives_a_run_only_what_concerns_it() -> None:
    mailbox = mailbox_with(Cancel("b"), Add("a", 2), A, Cancel("a", 1), Cancel())
    assert mailbox.during("a") == [Add("a", 2), Cancel("a", 1)]
    assert mailbox.during("a") == []
    assert mailbox.during("") == [Cancel()]
    assert mailbox.during("b") == [Cancel("b")]
    assert mailbox.next() == A


def test_close_cancels_what_goes_on_and_comes_before_all_that_waits() -> None:
    mailbox = mailbox_with(A, Close(), B)
    assert mailbox.during("c") == [Cancel("c")]
    assert mailbox.next() == Close()


@pytest.mark.parametrize("module", ["engine.contract.wire", "engine.scripted", "engine.session.export", "app.cli"])
def test_light_modules_load_neither_torch_nor_qt(module: str) -> None:
    heavy = "{'torch', 'transformers', 'triton', 'PySide6', 'pygments', 'huggingface_hub'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_candidates_are_numbered_from_the_first_and_may_have_a_sampling_of_their_own() -> None:
    hot = Sampling(temperature=1.2)
    asked = request(candidates=3, first_candidate=9, overrides={10: hot})
    assert list(asked.numbers) == [9, 10, 11]
    assert [asked.sampling_of(n) for n in asked.numbers] == [asked.sampling, hot, asked.sampling]


def test_what_a_candidate_with_an_opening_is_asked_is_a_request_of_its_own() -> None:
    earlier, opening = (Turn("user", "a"), Turn("assistant", "b")), (Turn("assistant", "c"), Turn("user", "d"))
    asked = request(candidates=3, turns=earlier, openings={2: opening})
    plain = request(candidates=3, turns=earlier)
    assert asked.asked_of(1) == asked.asked_of(3) == plain
    assert asked.asked_of(2) == request(
        candidates=3, prompt="d", turns=(*earlier, Turn("user", "p"), Turn("assistant", "c"))
    )
    assert plain.asked_of(2) is plain
