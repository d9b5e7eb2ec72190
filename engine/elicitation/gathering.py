"""All inputs for a run, from every source, and the examples in the prompt that say what should come out."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.elicitation.by_type import by_type
from engine.elicitation.constants import with_constants
from engine.elicitation.examples import Example, from_prompt, from_tests, setup_of
from engine.elicitation.expressions import UNKNOWN
from engine.elicitation.inputs import Input, distinct
from engine.elicitation.mutation import mutated, outside_marked
from engine.elicitation.program_inputs import of_program
from engine.elicitation.sequences import of_class
from engine.elicitation.target import CLASS, PROGRAM, Target

MOST = 40  # inputs on which candidates are compared
_OF_PROGRAM = 12  # each is a process that starts, twice
_WRITTEN = 16  # of them, at most, that somebody wrote


@dataclass(frozen=True)
class Gathered:
    """``inputs`` without repetition; ``setup``: imports for their arguments; ``examples``: with a known result."""

    inputs: tuple[Input, ...]
    setup: str = ""
    examples: tuple[Example, ...] = ()


def gather(
    target: Target,
    prompt: str,
    tests: str,
    suggested: Sequence[Input] = (),
    codes: Sequence[str] = (),
    most: int = MOST,
) -> Gathered:
    """``suggested``: inputs that a model wrote; ``codes``: the candidates, whose literals may be inputs, too."""
    most = min(most, _OF_PROGRAM) if target.kind == PROGRAM else most
    examples = from_prompt(prompt, target)
    written = distinct([*from_tests(tests, target), *(example.given for example in examples)], _WRITTEN)
    inputs = [*written, *distinct(suggested, most // 4)]
    inputs += _made(target, inputs, codes, most - len(inputs))
    known = tuple(example for example in examples if example.expected is not UNKNOWN)
    return Gathered(tuple(distinct(inputs, most)), setup_of(tests), known)


def _made(target: Target, known: Sequence[Input], codes: Sequence[str], most: int) -> list[Input]:
    if target.kind == PROGRAM:
        return of_program(known, most)
    if target.kind == CLASS:
        return of_class(target, known, most)
    of_type = [] if known else by_type(target.name, target.parameters, most // 2)
    limits = distinct(with_constants(known or of_type, codes), most // 2 if of_type else most // 8)
    changed = mutated(known or of_type, most)
    if of_type:
        return distinct([*of_type, *limits, *changed], most)
    return outside_marked([*changed[: most - len(limits)], *limits], known)
