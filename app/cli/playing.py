"""Plays a job and says what came of it: progress, history, export, stdout and the exit code."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from app.cli import summary
from app.cli.generation import CommandLineRun, Job
from app.cli.interrupts import INTERRUPTED
from app.cli.output import print_code, print_object, put, say
from app.cli.progress import Progress, open_progress
from app.cli.questions import save_suggested
from app.system.engines import open_engine
from engine.contract import BadRequest, BasslineError, RunOutcome
from engine.contract.states import FINISHED
from engine.runner.client import RunnerClient
from engine.session import settings
from engine.session.export import AlreadyExists, check_folder, chosen, export_run, summed_up
from engine.session.journal import history_file
from engine.session.recorder import Recorder
from engine.session.run import Run

PASSED, NONE_PASSED, BAD_USE = 0, 1, 2
Take = Callable[[Run, int], str]  # does something with the candidate that passes, and says what


def play(job: Job, arguments: argparse.Namespace, folder: Path | None, take: Take | None = None) -> int:
    """``folder``: where the run is exported to, if anywhere; ``take``: what else becomes of the candidate that passes.
    Returns the exit code.

    Raises ConsentMissing before anything was loaded, and BadRequest where nothing can be corrected.
    """
    if folder is not None:
        _check_export_folder(folder, arguments.overwrite, bool(job.tests) or job.ask)
    progress = open_progress(arguments.progress)
    with _kept(arguments, progress) as recorder:
        generation = CommandLineRun(
            job, lambda: open_engine(job.choice), RunnerClient, asker(arguments.yes), progress, recorder
        )
        generation.play()
        kept = _place_in_history(generation, recorder)
    run = generation.run
    if generation.interrupted and not generation.asked:
        return INTERRUPTED
    if generation.load_failed:
        progress.note(f"bassline: {generation.load_failed.reason}")
        return BAD_USE
    if run.reason and generation.asked:
        progress.note(f"bassline: {run.reason}")
    if run.outcome == RunOutcome.REFUSED:
        return BAD_USE
    saved = _export(run, folder, arguments.overwrite, progress) and _take(run, take, progress)
    if job.suggest is not None and generation.comparison is not None:
        saved = save_suggested(job.suggest, generation.comparison, arguments.overwrite, progress.note) and saved
    _say_what_came(generation, kept, progress)
    if arguments.json:
        print_object(summed_up(run))
    elif (best := run.best()) is not None:
        print_code(run.candidates[best].code)
    if generation.interrupted:
        return INTERRUPTED
    return exit_code(run) if saved else BAD_USE


def exit_code(run: Run) -> int:
    candidates = run.candidates.values()
    if run.tests:
        return PASSED if any(c.passed for c in candidates) else NONE_PASSED
    good = (c.state in FINISHED and c.code.strip() for c in candidates)
    return PASSED if any(good) else NONE_PASSED


def asker(yes: bool) -> Callable[[str], bool]:
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


def _say_what_came(generation: CommandLineRun, kept: int | None, progress: Progress) -> None:
    run = generation.run
    if not generation.asked:
        progress.note(summary.passes_already(run))
        return
    progress.note(summary.outcome(run))
    if run.metrics is not None:
        progress.note(summary.speed(run, run.metrics))
    if kept is not None and run.tests and chosen(run) is None:
        progress.note(f"It is run {kept} of the history; `resume {kept}` goes on until a candidate passes.")


def _place_in_history(generation: CommandLineRun, recorder: Recorder | None) -> int | None:
    """The number of the run in the history, if it is there."""
    if recorder is None or not generation.asked:
        return None
    recorder.note(generation.run)
    recorder.release(generation.run)
    recorder.flush()
    return recorder.id_of(generation.run)


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


def _check_export_folder(folder: Path, overwrite: bool, tests: bool) -> None:
    try:
        check_folder(folder, overwrite, tests)
    except AlreadyExists as error:
        more = "" if error.path == folder else ", or add --overwrite"
        raise BadRequest(f"{error.path} exists already; choose another folder{more}.") from None


def _export(run: Run, folder: Path | None, overwrite: bool, progress: Progress) -> bool:
    """Before anything is printed, so that a reader who leaves costs nothing; False when it could not be saved."""
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


def _take(run: Run, take: Take | None, progress: Progress) -> bool:
    pick = chosen(run)
    if take is None or pick is None:
        return True
    try:
        progress.note(take(run, pick))
    except BasslineError as error:
        progress.note(f"bassline: {error}")
        return False
    return True
