"""Each command: read, do, print, and the exit code."""

import argparse
import contextlib
import io
import queue
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.cli import servers, summary
from app.cli.arguments import budget_of, choice_of, parser, request_of
from app.cli.desktop_entry import desktop_entry
from app.cli.doctor import doctor
from app.cli.generation import CommandLineRun, ConsentMissing, Job
from app.cli.history import history
from app.cli.inputs import check_text, export_folder, read_prompt, read_suffix, read_tests, read_text
from app.cli.interrupts import INTERRUPTED, on_interrupt
from app.cli.models import models
from app.cli.output import one_line, print_code, print_object, put, say, silence
from app.cli.progress import Progress, open_progress
from app.system.engines import open_engine
from engine import logs
from engine.contract import BadRequest, BasslineError, LoadCancelled, RunOutcome
from engine.contract.states import FINISHED
from engine.runner.client import RunnerClient
from engine.runner.protocol import Answer, ConsentNeeded, RunTests, TestFinished
from engine.runner.report import Report
from engine.runner.verdicts import Outcome, Verdict
from engine.session import settings
from engine.session.candidate import test_state
from engine.session.export import AlreadyExists, check_folder, chosen, export_run, summed_up
from engine.session.journal import history_file
from engine.session.ladder import ladder
from engine.session.recorder import Recorder
from engine.session.run import Run
from engine.session.states import RunState

PASSED, NONE_PASSED, BAD_USE = 0, 1, 2


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
        "generate": generate,
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


def generate(arguments: argparse.Namespace) -> int:
    for option, texts in (("--system", [arguments.system]), ("--stop", arguments.stop)):
        for text in texts:
            check_text(text, f"The text of {option}")
    request = request_of(arguments, read_prompt(arguments), read_suffix(arguments))
    choice = choice_of(arguments)
    tests, folder = read_tests(arguments.tests), export_folder(arguments.export)
    if arguments.stop_at_first_pass and not tests:
        raise BadRequest("--stop-at-first-pass needs tests; name a file with --tests.")
    budget = budget_of(arguments)
    if budget is not None:
        if not tests:
            raise BadRequest("--until-pass needs tests; name a file with --tests.")
        request = replace(request, time_budget_s=None)  # it is the search's, whose runs may be several
    if folder is not None:
        _check_export_folder(folder, arguments.overwrite, bool(tests))
    progress = open_progress(arguments.progress)
    engine = open_engine(choice)
    with _kept(arguments, progress) as recorder:
        steps = ladder(choice) if budget else ()
        job = Job(request, choice, tests, arguments.stop_at_first_pass, arguments.environment, budget, steps)
        ask = _asker(arguments.yes)
        generation = CommandLineRun(job, engine, RunnerClient, ask, progress, recorder)
        generation.play()
    run = generation.run
    if generation.interrupted and run.state == RunState.WAITING:
        return INTERRUPTED
    if generation.load_failed:
        progress.note(f"bassline: {generation.load_failed.reason}")
        return BAD_USE
    if run.reason:
        progress.note(f"bassline: {run.reason}")
    if run.outcome == RunOutcome.REFUSED:
        return BAD_USE
    saved = _export(generation, folder, arguments.overwrite, progress)
    progress.note(summary.outcome(run))
    if run.metrics is not None:
        progress.note(summary.speed(run, run.metrics))
    if arguments.json:
        print_object(summed_up(run))
    elif (best := run.best()) is not None:
        print_code(run.candidates[best].code)
    if generation.interrupted:
        return INTERRUPTED
    return exit_code(run) if saved else BAD_USE


@contextlib.contextmanager
def _kept(arguments: argparse.Namespace, progress: Progress) -> Iterator[Recorder | None]:
    """What keeps the run in the history, unless the user does not want that; complaints come at the end."""
    loaded = settings.load()
    if arguments.no_history or not loaded.settings.history:
        yield None
        return
    complaints = list(loaded.notices)
    recorder = Recorder(history_file(), notify=complaints.append)
    try:
        yield recorder
    finally:
        recorder.close()
        for complaint in complaints:
            progress.note(f"bassline: {complaint}")


def exit_code(run: Run) -> int:
    candidates = run.candidates.values()
    if run.tests:
        return PASSED if any(c.passed for c in candidates) else NONE_PASSED
    good = (c.state in FINISHED and c.code.strip() for c in candidates)
    return PASSED if any(good) else NONE_PASSED


def test(arguments: argparse.Namespace) -> int:
    solution, tests = read_text(arguments.solution, "solution"), read_tests(arguments.tests)
    report = _run_tests(RunTests("test", solution, tests, environment=arguments.environment), _asker(arguments.yes))
    if arguments.json:
        print_object(report.to_dict())
    else:
        print(f"{test_state(report)}: {report.passed} of {len(report.tests)} tests passed")
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


def _check_export_folder(folder: Path, overwrite: bool, tests: bool) -> None:
    try:
        check_folder(folder, overwrite, tests)
    except AlreadyExists as error:
        more = "" if error.path == folder else ", or add --overwrite"
        raise BadRequest(f"{error.path} exists already; choose another folder{more}.") from None


def _export(generation: CommandLineRun, folder: Path | None, overwrite: bool, progress: Progress) -> bool:
    """Before anything is printed, so that a reader who leaves costs nothing; False when it could not be saved."""
    run = generation.run
    if folder is None or not any(candidate.text for candidate in run.candidates.values()):
        return True
    try:
        files = export_run(run, folder, overwrite)
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
        put(sys.stderr, "Run the code anyway? [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask
