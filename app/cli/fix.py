"""``fix`` and ``resume``: go on with a file of the user's own, or with a run of the history."""

import argparse
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from app.cli.arguments import budget_of, choice_of, request_of
from app.cli.generation import BEST, Job, check_fix
from app.cli.inputs import STDIN, check_text, environment_folder, export_folder, read_code, read_prompt, read_tests
from app.cli.output import say
from app.cli.playing import Take, play
from engine.contract import BadRequest, ModelChoice, Sampling
from engine.session.checked_tests import check
from engine.session.export import check_file, replace_file
from engine.session.journal import Journal, history_file
from engine.session.ladder import ladder
from engine.session.own_file import OWN, importing_solution, in_style_of, run_of
from engine.session.record import StoredRun
from engine.session.run import Run

_OF_A_RUN = {"target", "tests", "candidates", "until_pass", "stop_at_first_pass", "max_candidates", "time_budget_s"}
_MODEL = {"model", "server", "draft", "precision", "device", "offline", "ignore_fit"}
_RESULTS = {"export", "no_history", "overwrite", "json", "progress", "yes", "environment", "log", "log_text", "command"}
_CHARACTERS_PER_TOKEN = 2  # fewer than code has, so that the whole file has room in an answer


def fix(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    """Raises BadRequest, NotInHistory, HistoryUnavailable and whatever ``play`` raises.

    ``given``: the options that were written, not left at their defaults.
    """
    target, arguments = arguments.target, _checked(arguments)
    if all(word.isdecimal() for word in target) and len(target) <= 2:
        return _fix_candidate(arguments, given)
    if len(target) > 1:
        raise BadRequest("Name one file, or a run and a candidate by their numbers: fix FILE, or fix RUN CANDIDATE.")
    return _fix_file(arguments, given)


def _checked(arguments: argparse.Namespace) -> argparse.Namespace:
    """It goes on until one passes unless -n says how many. Raises BadRequest, before anything is read."""
    if arguments.candidates is not None and arguments.until_pass:
        raise BadRequest("Give either -n, for so many corrections once, or --until-pass, not both.")
    if arguments.candidates is not None and arguments.max_candidates is not None:
        raise BadRequest("--max-candidates is for going on until one passes; leave -n out, or it.")
    if arguments.stop_at_first_pass and arguments.candidates is None:
        raise BadRequest("--stop-at-first-pass is for -n; without -n it goes on until one passes, and stops there.")
    arguments.until_pass = arguments.candidates is None
    budget_of(arguments)
    return arguments


def fix_instead(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    """``generate --fix FILE``, whose prompt says what the file is for. Raises what ``fix`` raises."""
    if arguments.mode != "chat":
        raise BadRequest("--fix is for the mode chat; leave --mode out.")
    if arguments.prompt is not None or arguments.prompt_file is not None:
        arguments.prompt = read_prompt(arguments)
    if "candidates" not in given:
        arguments.candidates = None
    arguments.target, arguments.in_place = [arguments.fix], False
    return _fix_file(_checked(arguments), given)


def resume(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    """Raises what ``fix`` raises."""
    arguments.until_pass, arguments.stop_at_first_pass = True, False
    kept = _load(arguments.target)
    return _go_on(kept, arguments, given)


def _fix_file(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    name = arguments.target[0]
    path = None if name == STDIN else Path(name)
    if path is None and arguments.in_place:
        raise BadRequest("--in-place needs a file; what comes from stdin goes to stdout.")
    if arguments.tests is None:
        raise BadRequest("Say when the file is right: name its tests with --tests FILE.")
    if arguments.candidates is None:
        arguments.candidates = 1  # of a run that goes on until one passes, the budget says how many
    for text, what in ((arguments.system, "The text of --system"), (arguments.prompt or "", "The text of --prompt")):
        check_text(text, what)
    if arguments.temperature[0] != arguments.temperature[1]:
        raise BadRequest("fix takes one temperature, not a range; a range is for generate.")
    code, data = read_code(path)
    tests = read_tests(arguments.tests)
    renamed = importing_solution(tests, path.stem) if path else tests
    folder, budget, choice = export_folder(arguments.export), budget_of(arguments), choice_of(arguments)
    if arguments.in_place and path is not None:
        check_file(path)
    request = request_of(arguments, _prompt(path) if arguments.prompt is None else arguments.prompt)
    if "max_tokens" not in given:
        room = max(Sampling.max_tokens, len(code) // _CHARACTERS_PER_TOKEN)
        request = replace(request, sampling=replace(request.sampling, max_tokens=room))
    if budget is not None:
        request = replace(request, time_budget_s=None)
    run = run_of("run", replace(request, candidates=1), code.removeprefix("\ufeff"), renamed)
    steps = ladder(choice) if budget else ()
    job = Job(
        request,
        choice,
        renamed,
        arguments.stop_at_first_pass,
        environment_folder(arguments.environment),
        budget,
        steps,
        run=run,
        fix=0 if budget else OWN,
    )
    return play(job, arguments, folder, _writer(path, code, data) if arguments.in_place and path else None)


def _prompt(path: Path | None) -> str:
    """What the file is for where nobody says so; a file's name may hold bytes that are no text."""
    return f"Fix {os.fsencode(path.name).decode('utf-8', 'replace')}" if path else "Fix this code"


def _writer(path: Path, code: str, data: bytes) -> Take:
    def take(run: Run, number: int) -> str:
        if number == OWN:
            return f"{path} stays as it is."
        replace_file(path, data, in_style_of(code, run.candidates[number].code))
        return f"Wrote candidate {number} to {path}."

    return take


def _fix_candidate(arguments: argparse.Namespace, given: frozenset[str]) -> int:
    kept = _load(arguments.target[0])
    if strange := sorted(given - _OF_A_RUN - _MODEL - _RESULTS):
        words = " and ".join(f"--{name.replace('_', '-')}" for name in strange)
        raise BadRequest(f"Run {kept.id} keeps its own prompt and settings; leave {words} out, or fix a file.")
    run = kept.run
    if len(arguments.target) == 2:
        number = int(arguments.target[1])
        if number not in run.candidates:
            there = ", ".join(map(str, sorted(run.candidates)))
            raise BadRequest(f"Run {kept.id} has no candidate {number}; it has {there}.")
        if not run.candidates[number].ended or not run.candidates[number].text.strip():
            raise BadRequest(f"Candidate {number} of run {kept.id} wrote nothing; choose another one.")
    else:
        number = BEST
    return _go_on(kept, arguments, given, number)


def _go_on(kept: StoredRun, arguments: argparse.Namespace, given: frozenset[str], number: int = 0) -> int:
    """``number``: the candidate to begin with, ``BEST`` for the best that fails, 0 for what is likeliest to help."""
    run = kept.run
    tests = read_tests(arguments.tests) if arguments.tests is not None else run.tests
    if not tests.strip():
        raise BadRequest(f"Run {kept.id} has no tests; name a file with --tests.")
    if sentence := check(tests).objection:
        raise BadRequest(sentence)
    judged = number > 0 and tests == run.tests and run.candidates[number].report is not None
    if judged and not any(candidate.passed for candidate in run.candidates.values()):
        check_fix(run, number)  # here, where nothing was started yet
    budget, folder = budget_of(arguments), export_folder(arguments.export)
    choice = _choice(run, arguments, given)
    count = arguments.candidates if budget is None else 1
    request = replace(run.request, candidates=count)
    steps = ladder(choice) if budget else ()
    job = Job(
        request,
        choice,
        tests,
        arguments.stop_at_first_pass,
        environment_folder(arguments.environment),
        budget,
        steps,
        run=run,
        kept=kept.id,
        fix=number,
    )
    return play(job, arguments, folder)


def _choice(run: Run, arguments: argparse.Namespace, given: frozenset[str]) -> ModelChoice:
    """That of the run, but for what the user says of it now."""
    chosen = choice_of(arguments)
    before = run.provenance.choice
    if before is None or given & {"model", "server"}:
        return chosen
    return replace(before, **{name: getattr(chosen, name) for name in given & (_MODEL - {"model", "server"})})


def _load(word: str) -> StoredRun:
    if not word.isdecimal():
        raise BadRequest(f"{word!r} is no number of a run; `history` lists them.")
    with closing(Journal(history_file())) as journal:
        if journal.notice:
            say(f"bassline: {journal.notice}")
        kept = journal.load(int(word))
        if journal.is_open(kept.id):
            raise BadRequest(f"Run {kept.id} is still going on; stop it first, or wait.")
    return kept
