"""Questions about what candidates do, on the terminal: which of several results is right."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from app.cli.interrupts import on_interrupt
from app.cli.output import put, shown
from engine.contract import BadRequest, BasslineError, Request
from engine.elicitation import model_prompts, suggestions
from engine.elicitation.answers import Answer, NotWritable, with_answer
from engine.elicitation.elicitation import Elicitation
from engine.elicitation.questions import Question
from engine.elicitation.standings import Compared
from engine.elicitation.suggestions import Ranked
from engine.elicitation.target import NothingToAsk
from engine.runner.protocol import Observe, Observed
from engine.session import settings
from engine.session.comparing import elicitation_of
from engine.session.export import save
from engine.session.run import Run

NEEDS_TERMINAL = (
    "--ask puts questions on a terminal, and there is none here; leave it out, or use --compare for groups and inputs."
)
_DOES_NOT_MATTER, _STOP = ("d", "does not matter"), ("q", "quit")


class Helpers(Protocol):
    """What a comparison needs of the run's surroundings."""

    def observe(self, requests: list[Observe]) -> Iterator[Observed]:
        """The answers to ``requests``, in any order."""

    def generate(self, request: Request, name: str) -> list[str]:
        """What the model of the run writes, without touching the run."""

    def note(self, sentence: str) -> None:
        """Something a user should read."""


def check_comparison(arguments: argparse.Namespace) -> bool:
    """Whether candidates are to be compared. Raises BadRequest before a long run rather than after it."""
    if arguments.ask and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadRequest(NEEDS_TERMINAL)
    file: Path | None = arguments.suggest_tests
    if file is not None and file.exists() and not arguments.overwrite:
        raise BadRequest(f"{file} exists already; choose another file, or add --overwrite.")
    compare = bool(arguments.compare or arguments.ask or file is not None)
    if compare and not settings.load().settings.run_code:
        raise BadRequest(f"Running code is switched off in {settings.settings_file()} (run_code); nothing was run.")
    return compare


class Comparison:
    """Compares the candidates of a run that has ended, and ranks them; ``ask`` asks which results are right."""

    def __init__(self, run: Run, helpers: Helpers, consent: bool = False, environment: str = ""):
        self._run, self._helpers = run, helpers
        self._consent, self._environment = consent, environment
        self.elicitation: Elicitation | None = None

    def compare(self, suggest: bool = False) -> None:
        """``suggest``: the model writes tests as well. Says why where there is nothing to compare."""
        run = self._run
        try:
            elicitation = elicitation_of(run, run.tests)
            if suggest:
                elicitation = self._with_suggestions(elicitation)
            elif not elicitation.written and model_prompts.askable(elicitation.target):
                elicitation = self._with_calls(elicitation)
        except NothingToAsk as why:
            self._helpers.note(str(why))
            run.compared(Compared(record={"inputs": 0, "note": str(why)}, answered=run.comparison.answered))
            return
        self.elicitation = elicitation
        for answer in self._helpers.observe(elicitation.requests("compare", self._consent, self._environment)):
            elicitation.take(answer)
        self._tell()

    def _with_calls(self, elicitation: Elicitation) -> Elicitation:
        """Nobody wrote an input, and made-up ones say little: the model is asked for calls."""
        run, target = self._run, elicitation.target
        texts = self._helpers.generate(model_prompts.for_calls(run.request, target), "calls")
        return elicitation_of(run, run.tests, suggestions.calls(texts, target))

    def _with_suggestions(self, elicitation: Elicitation) -> Elicitation:
        run, target = self._run, elicitation.target
        if not model_prompts.askable(target):
            self._helpers.note("Tests are suggested for functions only; the candidates are compared without.")
            return elicitation
        texts = self._helpers.generate(model_prompts.for_asserts(run.request, target), "suggest")
        suggested = suggestions.read(texts, target)
        return elicitation_of(run, run.tests, suggestions.calls(texts, target), suggested)

    def _tell(self) -> None:
        assert self.elicitation is not None
        self._run.compared(self.elicitation.compared())

    def ask(self) -> str:
        """The tests with the answers in them; those that there were, where none was given."""
        tests, elicitation = self._run.tests, self.elicitation
        while elicitation is not None and (question := elicitation.question()) is not None:
            try:
                with on_interrupt(_stop):
                    answer = self._answer(elicitation, question)
            except (EOFError, _Stopped):
                break
            if answer is not None:
                try:
                    tests = with_answer(tests, answer)
                except NotWritable as why:
                    self._helpers.note(str(why))
                    answer = None
            elicitation.keep(question, answer)
            self._tell()
        if elicitation is not None and elicitation.question() is None:
            self._helpers.note(elicitation.sentence)
        return tests

    def _answer(self, elicitation: Elicitation, question: Question) -> Answer | None:
        """None: it does not matter. Raises EOFError and _Stopped where no more is to be asked."""
        put(sys.stderr, shown(f"\n{question.sentence}\n"))
        for number, choice in enumerate(question.choices, 1):
            put(sys.stderr, shown(f"  {number}  {choice.text}\n"))
        put(sys.stderr, "  d  it does not matter\n  q  no more questions\n  or type what is right (= 2 for a number)\n")
        while True:
            put(sys.stderr, "> ")
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            words = line.strip()
            if words.lower() in _STOP:
                raise _Stopped
            if words.lower() in _DOES_NOT_MATTER:
                return None
            if words.isdigit() and 1 <= int(words) <= len(question.choices):
                return elicitation.choose(question, int(words) - 1)
            try:
                return elicitation.another(question, words.removeprefix("="))
            except ValueError as why:
                put(sys.stderr, f"{why}\n")


class _Stopped(Exception):
    """The user wants no more questions."""


def _stop() -> None:
    raise _Stopped


def save_suggested(file: Path, comparison: Comparison, overwrite: bool, note: Callable[[str], None]) -> bool:
    """The tests that the model wrote and some candidate passes; False when the file could not be saved."""
    elicitation = comparison.elicitation
    offered = elicitation.offered() if elicitation is not None else []
    if not offered:
        note("The model wrote no test that a candidate passes; no file was saved.")
        return True
    try:
        path = save(file, suggested_file(offered), overwrite)
    except BasslineError as error:
        note(f"bassline: {error}")
        return False
    count = "1 suggested test" if len(offered) == 1 else f"{len(offered)} suggested tests"
    note(f"Saved {count} to {path}; look at each before you use it.")
    return True


def suggested_file(offered: list[Ranked], tests: str = "") -> str:
    """Suggested tests as a file: each is for the user to look at, so it says who agrees."""
    lines = ["# Suggested by the model, not reviewed yet: keep what is right.\n"]
    for entry in offered:
        try:
            text = with_answer("", entry.answer)
        except NotWritable:
            continue
        agree = ", ".join(map(str, entry.members))
        lines.append(f"\n# suggested; candidates {agree} agree\n{text}")
    return "".join(lines)
