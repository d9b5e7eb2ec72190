"""One run's questions: its inputs, what was observed on them, what was answered, and where candidates stand."""

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from engine.elicitation import suggestions, values
from engine.elicitation.answers import Answer, is_written
from engine.elicitation.examples import Example, from_tests
from engine.elicitation.expressions import UNKNOWN, literal
from engine.elicitation.gathering import Gathered, gather
from engine.elicitation.groups import Observed, agreement, behaviours, replies
from engine.elicitation.inputs import MODEL, PROMPT, TESTS, Input
from engine.elicitation.outcomes import Outcome, printed
from engine.elicitation.questions import Question, next_question
from engine.elicitation.standings import Compared, Standing
from engine.elicitation.suggestions import Ranked, Suggestion
from engine.elicitation.target import PROGRAM, find_target
from engine.runner import protocol

NO_ANSWERS: Mapping[Input, Answer | None] = MappingProxyType({})
NOT_STARTED = "The candidates could not be run to compare them"
_SKIPPED = Outcome("skipped")
_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)


@dataclass(frozen=True)
class Solution:
    """A candidate to compare: its code, the mean log-probability of its tokens, if known, and its whole answer."""

    code: str
    mean_logprob: float | None = None
    text: str = ""


class Elicitation:
    """Pure: ``requests`` go to the runner, ``take`` takes what it observed; then there may be questions.

    Raises NothingToAsk when there is nothing that candidates could be compared on.
    """

    def __init__(
        self,
        prompt: str,
        tests: str,
        solutions: Mapping[int, Solution],
        extra: Sequence[Input] = (),
        suggested: Sequence[Suggestion] = (),
        answered: Mapping[Input, Answer | None] = NO_ANSWERS,
    ):
        """``extra``: inputs that a model wrote; ``suggested``: tests that it wrote; ``answered``: what was said about
        the run before, None where it does not matter. An answer that is no longer in the tests was taken back.
        """
        self.solutions = {number: s for number, s in solutions.items() if s.code.strip()}
        codes = [s.code for s in self.solutions.values()]
        self.target = find_target(prompt, tests, codes)
        shown = suggestions.calls([s.text for s in self.solutions.values()] + codes, self.target)
        gathered = gather(self.target, prompt, tests, [*extra, *shown], codes)
        answered = self._still_valid(answered, tests)
        before = [given for given in answered if given not in gathered.inputs and self._is_about_target(given)]
        self.inputs: tuple[Input, ...] = (*gathered.inputs, *before)
        self._compared = len(self.inputs)  # those behind are only for suggested tests
        self.suggested: list[Suggestion] = []
        self.suggest(suggested)
        self.gathered: Gathered = gathered
        self.answers: dict[int, Answer | None] = {  # by number of the input; None: it does not matter
            at: answered[given] for at, given in enumerate(self.inputs) if given in answered
        }
        self._of_others = {given: answer for given, answer in answered.items() if given not in self.inputs}
        self.problem = ""  # why nothing could be observed
        self._outcomes: dict[str, tuple[Outcome, ...]] = {}  # by code, on the first inputs at least
        self._waiting: dict[str, tuple[str, int]] = {}  # name of a request -> code, and on how many inputs

    def _still_valid(self, answered: Mapping[Input, Answer | None], tests: str) -> dict[Input, Answer | None]:
        if not any(answered.values()):
            return dict(answered)
        tested = from_tests(tests, self.target)
        return {
            given: answer
            for given, answer in answered.items()
            if answer is None or given in tested or is_written(tests, answer)
        }

    def _is_about_target(self, given: Input) -> bool:
        if given.is_program:
            return self.target.kind == PROGRAM
        return given.calls[0].name == self.target.name

    def suggest(self, found: Sequence[Suggestion]) -> None:
        """Further tests that a model wrote; ``requests`` then asks for what is not known yet of their inputs."""
        found = [s for s in found if s not in self.suggested and self._is_about_target(s.given)]
        self.suggested += found
        more = dict.fromkeys(s.given for s in found if s.given not in self.inputs)
        self.inputs = (*self.inputs, *more)

    @property
    def written(self) -> bool:
        """Whether an input is by the user or by a model, and not only made up from types."""
        return any(given.origin in (TESTS, PROMPT, MODEL) for given in self.inputs[: self._compared])

    # What is to be observed.

    def requests(self, name: str, consent: bool = False, environment: str = "") -> list[protocol.Observe]:
        """One for each different code, about the inputs on which it was not observed. Their ids begin with ``name``.

        What was asked for before and has not come is not waited for any more.
        """
        self._waiting.clear()
        codes = dict.fromkeys(solution.code for solution in self.solutions.values())
        made = []
        for at, code in enumerate(codes):
            known = len(self._outcomes.get(code, ()))
            if known < len(self.inputs):
                id = f"{name}/{at}"
                self._waiting[id] = code, len(self.inputs) - known
                wires = tuple(given.wire for given in self.inputs[known:])
                made.append(protocol.Observe(id, code, wires, self.gathered.setup, consent, environment))
        return made

    def take(self, answer: protocol.Observed) -> None:
        """What was observed; an id that is not waited for changes nothing."""
        if answer.id not in self._waiting:
            return
        code, count = self._waiting.pop(answer.id)
        fresh = [Outcome.from_json(text) for text in answer.outcomes[:count]]
        fresh += [_SKIPPED] * (count - len(fresh))
        self._outcomes[code] = (*self._outcomes.get(code, ()), *fresh)
        if not answer.outcomes:
            self.problem = answer.why

    @property
    def observing(self) -> bool:
        return bool(self._waiting)

    @property
    def observed(self) -> bool:
        """Nothing is left to ask the runner for."""
        codes = {solution.code for solution in self.solutions.values()}
        return all(len(self._outcomes.get(code, ())) == len(self.inputs) for code in codes)

    # What follows.

    @property
    def candidates(self) -> dict[int, Observed]:
        """Those that were observed, on the inputs on which they are compared."""
        found = {}
        for number, solution in self.solutions.items():
            seen = self._outcomes.get(solution.code)
            if seen is not None:
                doubt = sum(not _fits(seen[at], wanted) for at, wanted in self._examples())
                found[number] = Observed(seen[: self._compared], solution.mean_logprob, doubt)
        return found

    def outcomes_of(self, number: int) -> tuple[Outcome, ...]:
        """What a candidate did on every input, also on those of suggested tests; empty where it was not observed."""
        seen = self._outcomes.get(self.solutions[number].code, ())
        return (*seen, *[_SKIPPED] * (len(self.inputs) - len(seen))) if seen else ()

    @property
    def gives_values(self) -> bool:
        """Whether some candidate gives a value on some input: a suggested test is about one."""
        return any(outcome.subject == "value" for c in self.candidates.values() for outcome in c.outcomes)

    @property
    def answered(self) -> dict[Input, Answer | None]:
        """All that was said about the run, for another Elicitation of it."""
        return self._of_others | {self.inputs[at]: answer for at, answer in self.answers.items()}

    @property
    def open(self) -> dict[int, Observed]:
        """Candidates that no answer speaks against."""
        return {number: c for number, c in self.candidates.items() if not self._contradicted(number)}

    def question(self) -> Question | None:
        """The next one; None when nothing is left to ask. What the prompt itself answers is not asked."""
        left = self.open
        if len(left) < 2 or self.observing:
            return None
        known = {at for at, wanted in self._examples() if any(_fits(c.outcomes[at], wanted) for c in left.values())}
        return next_question(left, self.inputs[: self._compared], known | self.answers.keys())

    def choose(self, question: Question, choice: int) -> Answer:
        """The answer that ``choice`` of ``question`` is right. It still has to be kept, see ``keep``."""
        reply = question.choices[choice].reply
        if reply.outcome.subject != "error":
            return Answer(question.given, reply.outcome)
        raised = [self.candidates[number].outcomes[question.at] for number in reply.members]
        kinds = sorted({outcome.error for outcome in raised})
        own = any(outcome.own for outcome in raised) or not set(kinds) <= _ERRORS
        return Answer(question.given, reply.outcome, () if own else tuple(kinds))

    def another(self, question: Question, text: str) -> Answer:
        """The answer that something else is right: a literal, or the name of an error. Raises ValueError."""
        text = text.strip()
        if question.given.is_program:
            return Answer(question.given, Outcome("output", printed=text.replace("\\n", "\n")))
        if text.removeprefix("raises ") in _ERRORS:
            name = text.removeprefix("raises ")
            return Answer(question.given, Outcome("raised", error=name), (name,))
        wire = literal(text)
        if wire is UNKNOWN:
            raise ValueError("Write a value as Python has it, such as [1, 2], 'text' or None, or the name of an error.")
        return Answer(question.given, Outcome("value", wire))

    def keep(self, question: Question, answer: Answer | None) -> None:
        """``answer`` None: it does not matter, and is not asked again."""
        self.answers[question.at] = answer

    def accept(self, offer: Ranked) -> None:
        """A suggested test is right, the user says: it is an answer from now on."""
        self.answers[self.inputs.index(offer.suggestion.given)] = offer.answer

    def _contradicted(self, number: int) -> int:
        """By how many answers."""
        seen = self.outcomes_of(number)
        return sum(answer is not None and not _is(seen[at], answer) for at, answer in self.answers.items())

    def _examples(self) -> list[tuple[int, Any]]:
        return [
            (self.inputs.index(e.given), e.expected) for e in self._known() if e.given in self.inputs[: self._compared]
        ]

    def _known(self) -> Sequence[Example]:
        return self.gathered.examples

    @property
    def open_suggestions(self) -> list[Suggestion]:
        """Those about inputs that neither the user's tests nor the answers are about."""
        known = {given for at, given in enumerate(self.inputs) if given.origin == TESTS or at in self.answers}
        return [suggestion for suggestion in self.suggested if suggestion.given not in known]

    def offered(self) -> list[Ranked]:
        """Suggested tests worth offering, best first."""
        at, left = {given: index for index, given in enumerate(self.inputs)}, self.open_suggestions
        seen = {n: outcomes for n in self.solutions if (outcomes := self.outcomes_of(n))}
        mine = {n: [outcomes[at[s.given]] for s in left] for n, outcomes in seen.items()}
        return suggestions.ranked(left, mine, behaviours(self.candidates))

    def standings(self) -> dict[int, Standing]:
        """Of every candidate that was observed."""
        found, candidates, offered = dict[int, Standing](), self.candidates, self.offered()
        if not candidates:
            return {}
        agreeing, share, examples = suggestions.agreeing(offered), agreement(candidates), self._examples()
        groups = behaviours(candidates)
        for group in groups:
            for number in group:
                seen = sum(outcome.decides for outcome in candidates[number].outcomes)
                fitting = len(examples) - candidates[number].doubt
                suggested = agreeing.get(number, 0), len(offered)
                alive = seen > 0
                key = (-self._contradicted(number), alive, fitting, suggested[0], len(group), share[number])
                found[number] = Standing(group, seen, (fitting, len(examples)), suggested, key)
        return found

    def compared(self) -> Compared:
        """All of it that a run keeps."""
        return Compared(self.standings(), self.record(), self.answered)

    @property
    def sentence(self) -> str:
        """Where things stand when there is no question."""
        candidates = self.candidates
        if not candidates or (self.problem and not any(c.outcomes for c in candidates.values())):
            return self.problem or f"{NOT_STARTED}."
        if self.problem and all(o.kind == "skipped" for c in candidates.values() for o in c.outcomes):
            return f"{NOT_STARTED}: {self.problem}"
        outcomes = [outcome for c in candidates.values() for outcome in c.outcomes]
        if self.answers and not self.open:
            return "No candidate gives what you said is right; your answers are in the tests, for further candidates."
        if all(not outcome.subject for outcome in outcomes):
            return "No candidate gives a result on any input, so there is nothing to ask."
        if all(outcome.subject in ("", "nothing", "error") for outcome in outcomes):
            return "The candidates return nothing, print nothing and change no argument, so there is nothing to ask."
        if not any(outcome.decides for outcome in outcomes if outcome.subject in ("value", "changes", "prints")):
            if all(outcome.unstable for outcome in outcomes if outcome.subject):
                return "The candidates give something else each time they are called, so there is nothing to ask."
            return "The results are objects that cannot be compared or written as tests, so there is nothing to ask."
        left = self.open
        if len(left) < len(candidates) or self.answers:
            return f"{_are(len(left))} left, and nothing more to ask: they agree on what can be asked."
        unstable = sum(any(o.unstable for o in c.outcomes) for c in candidates.values())
        note = f" {unstable} of them give something else each time they are called." if unstable else ""
        if len(behaviours(candidates)) > 1:
            return f"The candidates differ only where no question can be asked.{note}"
        agreed = sum(all(c.outcomes[at].decides for c in candidates.values()) for at in range(self._compared))
        many = (
            f"all agree on {agreed} inputs"
            if len(candidates) > 1
            else f"one candidate was tried on {self._compared} inputs"
        )
        return f"{many[:1].upper()}{many[1:]}.{note}"

    def record(self) -> dict[str, Any]:
        """For ``--json``: groups, the inputs that split them, answers and suggested tests."""
        candidates = self.candidates
        splitting = []
        for at, given in enumerate(self.inputs[: self._compared]):
            groups = replies(candidates, at) if candidates else []
            if len(groups) > 1:
                results = [{"result": r.outcome.words, "candidates": list(r.members)} for r in groups]
                splitting.append({"input": given.text, "origin": given.origin, "results": results})
        return {
            "inputs": self._compared,
            "groups": [list(group) for group in behaviours(candidates)],
            "splitting_inputs": splitting,
            "answers": [
                {"input": self.inputs[at].text, "right": answer and answer.outcome.words}
                for at, answer in self.answers.items()
            ],
            "suggested_tests": [
                {
                    "input": r.suggestion.given.text,
                    "result": values.show(r.suggestion.expected),
                    "candidates": list(r.members),
                }
                for r in self.offered()
            ],
        }


def _is(outcome: Outcome, answer: Answer) -> bool:
    """Whether the test that ``answer`` becomes would pass."""
    if answer.outcome.subject == "error" and answer.errors:
        return outcome.subject == "error" and outcome.error in answer.errors and not outcome.unstable
    if answer.outcome.subject == "value" or answer.outcome.subject == "nothing":
        if outcome.kind != "value" or outcome.unstable:
            return False
        return values.same(outcome.value, answer.outcome.value) or _same_items(outcome.value, answer.outcome.value)
    if answer.outcome.subject == "changes" and outcome.kind == "value":
        outcome = replace(outcome, value=None)
    if answer.outcome.subject == "prints":
        return outcome.kind in ("value", "output") and printed(outcome.printed) == printed(answer.outcome.printed)
    return outcome.like(answer.outcome)


def _same_items(value: Any, iterator: Any) -> bool:
    """A test of an iterator looks at its items, and takes a list of them as well."""
    if values.tag(iterator) != "iterator" or values.tag(value) not in ("list", "tuple"):
        return False
    return values.same(["iterator", True, *value[1:]], iterator)


def _fits(outcome: Outcome, expected: Any) -> bool:
    """Whether an example of the prompt is met."""
    if outcome.kind == "output":
        return isinstance(expected, str) and printed(outcome.printed) == printed(expected)
    if outcome.kind != "value" or outcome.unstable:
        return False
    if values.same(outcome.value, expected):
        return True
    return values.tag(outcome.value) == "iterator" and values.same(["list", *outcome.value[2:]], expected)


def _are(count: int) -> str:
    return "1 candidate is" if count == 1 else f"{count} candidates are"
