"""What a model is asked for: calls only, as inputs, or asserts, as suggested tests."""

from dataclasses import replace

from engine.contract import Request
from engine.elicitation.target import CLASS, Target

_CALLS = (
    "Below is a task for a Python programmer. Do not solve it. Write {count} calls of {name} that show whether a "
    "solution is right: ordinary ones, and edge cases. One call a line in one Python code block, literal arguments "
    "only, no results, no comments.\n\n{task}"
)
_ASSERTS = (
    "Below is a task for a Python programmer. Do not solve it. Write {count} asserts that test {name}, one a line in "
    "one Python code block, each of the form `assert {name}(...) == ...` with literal values only.\n\n{task}"
)
_COUNT = 10
_MAX_TOKENS = 400


def askable(target: Target) -> bool:
    """Whether a model can be asked for lines of calls: a class needs several statements, a program none."""
    return bool(target.name) and target.kind != CLASS


def for_calls(request: Request, target: Target, answers: int = 2) -> Request:
    """Asks the model of ``request`` for calls of the target."""
    return _asked(request, _CALLS, target, answers)


def for_asserts(request: Request, target: Target, answers: int = 8) -> Request:
    """Asks the model of ``request`` for asserts about the target."""
    return _asked(request, _ASSERTS, target, answers)


def _asked(request: Request, words: str, target: Target, answers: int) -> Request:
    prompt = words.format(count=_COUNT, name=target.name, task=request.prompt)
    sampling = replace(request.sampling, max_tokens=_MAX_TOKENS, stop=(), code_stop="block")
    return replace(
        request,
        prompt=prompt,
        candidates=answers,
        first_candidate=1,
        sampling=sampling,
        mode="chat",
        goal="all",
        suffix="",
        overrides={},
        openings={},
        width=0,
    )
