"""Each command: read, do, print, and the exit code."""

import argparse
import contextlib
import io
import queue
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from app.cli import servers
from app.cli.arguments import budget_of, choice_of, given, parser, request_of
from app.cli.desktop_entry import desktop_entry
from app.cli.doctor import doctor
from app.cli.fix import fix, fix_instead, resume
from app.cli.generation import ConsentMissing, Job
from app.cli.history import history
from app.cli.inputs import (
    check_text,
    environment_folder,
    export_folder,
    read_prompt,
    read_suffix,
    read_tests,
    read_text,
)
from app.cli.interrupts import INTERRUPTED, on_interrupt
from app.cli.models import models
from app.cli.output import one_line, print_object, say, silence
from app.cli.playing import BAD_USE, NONE_PASSED, PASSED, asker, play
from app.cli.questions import check_comparison
from engine import logs
from engine.contract import BadRequest, BasslineError, LoadCancelled
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, ConsentNeeded, RunTests, TestFinished
from engine.runner.report import Report
from engine.runner.verdicts import Outcome, Verdict
from engine.session import settings
from engine.session.candidate import test_state
from engine.session.ladder import ladder
from engine.session.own_file import importing_solution
from engine.session.states import label_of


def main(words: list[str]) -> int:
    """Run one command and return its exit code. Errors a user can act on are one sentence on stderr."""
    return guarded(lambda: _command(words))


def guarded(play: Callable[[], int]) -> int:
    """The exit code of ``play``, whatever it raises and whatever becomes of stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does it: a sentence never fails to print
    try:
        code = play()
        sys.stdout.flush()  # here, where a full disk still has a sentence
        return code
    except LoadCancelled:
        return INTERRUPTED
    except BasslineError as error:
        say(f"bassline: {error}")
        return BAD_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as head does
        silence(sys.stdout)
        return NONE_PASSED
    except OSError as error:
        reason = error.strerror or str(error)
        what = error.filename or "The output"
        say(f"bassline: {what} could not be {'used' if error.filename else 'written'}: {reason}.")
        silence(sys.stdout)
        return BAD_USE


def _command(words: list[str]) -> int:
    try:
        arguments = parser().parse_args(words)
    except SystemExit as leaving:  # argparse has said why
        return int(leaving.code or 0)
    command: Callable[[argparse.Namespace], int] | None = {
        "generate": lambda arguments: generate(arguments, given(words)),
        "fix": lambda arguments: fix(arguments, given(words)),
        "resume": lambda arguments: resume(arguments, given(words)),
        "test": test,
        "models": models,
        "history": history,
        "servers": servers.command,
        "doctor": doctor,
        "desktop-entry": desktop_entry,
    }.get(arguments.command)
    if command is None:
        parser().print_help()
        return BAD_USE
    if arguments.log is not None:
        logs.start(arguments.log, texts=arguments.log_text)
    if proxy := settings.load().settings.proxy:
        settings.use_proxy(proxy, {})
    return command(arguments)


def generate(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    if arguments.fix is not None:
        return fix_instead(arguments, given)
    for option, texts in (("--system", [arguments.system]), ("--stop", arguments.stop)):
        for text in texts:
            check_text(text, f"The text of {option}")
    request = request_of(arguments, read_prompt(arguments), read_suffix(arguments))
    choice = choice_of(arguments)
    tests, folder = read_tests(arguments.tests), export_folder(arguments.export)
    environment = environment_folder(arguments.environment)
    if arguments.stop_at_first_pass and not tests:
        raise BadRequest("--stop-at-first-pass needs tests; name a file with --tests.")
    budget = budget_of(arguments)
    if budget is not None:
        if not tests:
            raise BadRequest("--until-pass needs tests; name a file with --tests.")
        request = replace(request, time_budget_s=None)  # it is the search's, whose runs may be several
    compare = check_comparison(arguments)
    steps = ladder(choice) if budget else ()
    job = Job(request, choice, tests, arguments.stop_at_first_pass, environment, budget, steps)
    job = replace(job, compare=compare, ask=arguments.ask, suggest=arguments.suggest_tests)
    return play(job, arguments, folder)


def test(arguments: argparse.Namespace) -> int:
    solution = read_text(arguments.solution, "solution")
    tests = importing_solution(read_tests(arguments.tests), arguments.solution.stem)
    environment = environment_folder(arguments.environment)
    report = _run_tests(RunTests("test", solution, tests, environment=environment), asker(arguments.yes))
    if arguments.json:
        print_object(report.to_dict())
    else:
        print(f"{label_of(test_state(report))}: {report.passed} of {len(report.tests)} tests passed")
        for name in report.weak:
            say(f"{name}: {report.isolation[name]}")
        for result in report.tests:
            if result.outcome != Outcome.PASSED:
                print(f"  {result.id}: {result.outcome}" + (f", {one_line(result.why)}" if result.why else ""))
        if report.why and not any(result.why for result in report.tests):
            print(f"  {one_line(report.why)}")
    if report.verdict == Verdict.INFRA:  # it says nothing about the solution
        return BAD_USE
    return PASSED if report.verdict == Verdict.PASS else NONE_PASSED


def _run_tests(test: RunTests, ask_consent: Callable[[str], bool]) -> Report:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    with contextlib.ExitStack() as at_end:
        at_end.enter_context(on_interrupt(_raise_interrupt))
        runner = RunnerClient(answers.put)
        at_end.callback(runner.close)
        runner.test(test)
        while True:
            answer = answers.get()
            if isinstance(answer, TestFinished):
                return answer.report
            if isinstance(answer, ConsentNeeded):
                if not ask_consent(answer.sentence):
                    raise ConsentMissing(f"{answer.sentence} Nothing was run; add --yes to run it anyway.")
                agreed: dict[str, Any] = {answer.kind: True}
                test = replace(test, **agreed)
                runner.test(test)


def _raise_interrupt() -> None:
    raise KeyboardInterrupt
