"""Each command: read, do, print, and the exit code."""

import argparse
import io
import os
import queue
import sys
from collections.abc import Callable
from pathlib import Path

from app.cli import summary
from app.cli.arguments import choice_of, parser, request_of
from app.cli.generation import ConsentMissing, Generation, Job
from app.cli.inputs import read_prompt, read_tests, read_text
from app.cli.output import one_line, print_code, print_object, say
from app.cli.progress import Progress, open_progress
from app.engines import open_engine
from engine.contract import BadRequest, BasslineError, LoadCancelled
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, ConsentNeeded, Test, TestFinished
from engine.runner.report import Report
from engine.session.export import AlreadyExists, check_folder, chosen, export_run
from engine.session.run import Run

PASSED, NONE_PASSED, BAD_USE, INTERRUPTED = 0, 1, 2, 130


def main(words: list[str]) -> int:
    """Run one command and return its exit code. Errors a person can act on are one sentence on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does it: a sentence never fails to print
    try:
        arguments = parser().parse_args(words)
    except SystemExit as leaving:  # argparse has said why
        return int(leaving.code or 0)
    command: Callable[[argparse.Namespace], int] | None = {
        "generate": generate,
        "test": test,
        "models": models,
    }.get(arguments.command)
    if command is None:
        parser().print_help()
        return BAD_USE
    try:
        return command(arguments)
    except LoadCancelled:
        return INTERRUPTED
    except BasslineError as error:
        say(f"bassline: {error}")
        return BAD_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NONE_PASSED


def generate(arguments: argparse.Namespace) -> int:
    request, choice = request_of(arguments, read_prompt(arguments)), choice_of(arguments)
    tests = read_tests(arguments.tests)
    if arguments.export is not None and not arguments.overwrite:
        _check_export_folder(arguments.export)
    progress = open_progress(arguments.progress)
    engine = open_engine(choice.model)
    generation = Generation(Job(request, choice, tests), engine, RunnerClient, _asker(arguments.yes), progress)
    generation.play()
    run = generation.run
    if generation.interrupted and run.state == "waiting":
        return INTERRUPTED
    if generation.load_failed:
        progress.note(f"bassline: {generation.load_failed.reason}")
        return BAD_USE
    if run.reason:
        progress.note(f"bassline: {run.reason}")
    if run.outcome == "refused":
        return BAD_USE
    saved = _export(generation, arguments.export, arguments.overwrite, progress)
    progress.note(summary.outcome(run))
    if run.metrics is not None:
        progress.note(summary.speed(run, run.metrics))
    if arguments.json:
        print_object(run.result())
    elif (best := run.best()) is not None:
        print_code(run.candidates[best].code)
    if generation.interrupted:
        return INTERRUPTED
    return exit_code(run) if saved else BAD_USE


def exit_code(run: Run) -> int:
    candidates = run.candidates.values()
    good = (c.passed for c in candidates) if run.tests else (c.state in ("done", "cut") for c in candidates)
    return PASSED if any(good) else NONE_PASSED


def test(arguments: argparse.Namespace) -> int:
    solution, tests = read_text(arguments.solution, "solution"), read_tests(arguments.tests)
    report = _run_tests(solution, tests, _asker(arguments.yes))
    if arguments.json:
        print_object(report.to_dict())
    else:
        print(f"{report.verdict}: {report.passed} of {len(report.tests)} tests passed")
        for result in report.tests:
            if result.outcome != "passed":
                print(f"  {result.id}: {result.outcome}" + (f", {one_line(result.why)}" if result.why else ""))
        if report.why and not any(result.why for result in report.tests):
            print(f"  {one_line(report.why)}")
    return PASSED if report.verdict == "pass" else NONE_PASSED


def _run_tests(solution: str, tests: str, ask_consent: Callable[[str], bool]) -> Report:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    runner = RunnerClient(answers.put)
    try:
        runner.test(Test("test", solution, tests))
        while True:
            answer = answers.get()
            if isinstance(answer, TestFinished):
                return answer.report
            if isinstance(answer, ConsentNeeded):
                if not ask_consent(answer.sentence):
                    raise ConsentMissing(f"{answer.sentence} Nothing was run; add --yes to run it all the same.")
                runner.test(Test("test", solution, tests, consent=True))
    finally:
        runner.close()


def models(arguments: argparse.Namespace) -> int:
    from app.cli.models import fetch, list_models

    return list_models(arguments) if arguments.models_command == "list" else fetch(arguments)


def _check_export_folder(folder: Path) -> None:
    try:
        check_folder(folder)
    except AlreadyExists as error:
        raise BadRequest(f"{error.path} exists already; choose another folder, or add --overwrite.") from None


def _export(generation: Generation, folder: Path | None, overwrite: bool, progress: Progress) -> bool:
    """Before anything is printed, so that a reader who leaves costs nothing; False when it could not be saved."""
    run = generation.run
    if folder is None or not any(candidate.text for candidate in run.candidates.values()):
        return True
    try:
        files = export_run(run, folder, generation.job.choice, generation.ready, overwrite)
    except BasslineError as error:
        progress.note(f"bassline: {error}")
        return False
    pick = next((path.name for path in files if path.stem == "best"), None)
    best = f"; {pick} is candidate {chosen(run)}" if pick else ""
    progress.note(f"Saved to {folder}: {len(files)} files{best}.")
    return True


def _asker(yes: bool) -> Callable[[str], bool]:
    """How consent is asked: ``--yes`` gives it, a terminal asks, anything else means no."""

    def ask(sentence: str) -> bool:
        if yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        say(sentence)
        print("Run the code anyway? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask
