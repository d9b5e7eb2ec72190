"""The options of the command line, and the request that they make."""

import argparse
import secrets
import sys
from pathlib import Path
from typing import Any, NoReturn

from app.cli.desktop_entry import add_desktop_entry
from app.cli.doctor import add_doctor
from app.cli.history import add_history
from app.cli.models import add_models
from app.cli.options import add_budget, add_comparison, add_consent, add_model, add_results, add_speculation
from app.cli.output import put
from app.cli.parameters import add_parameter
from app.cli.sampling import add_sampling, ladder_of, sampling_of
from app.cli.servers import add_servers
from engine.contract import BadRequest, ModelChoice, Request, Speculation
from engine.contract.parameters import CANDIDATES, MODEL, REQUEST, SPECULATION, carried_by
from engine.sampler.names import POLICIES
from engine.session.arms import Budget
from engine.session.servers import find

_DESCRIPTION = """\
Bassline writes several candidates for one coding prompt at once, with a local model,
runs your tests on each and offers the one that passes.

Without a command the window opens."""

_EXAMPLES = """\
examples:
  bassline                                         the window
  bassline --demo                                  the window with recorded answers, no model needed
  bassline generate "Write a Python function add(a, b)." -n 8 --tests tests.py --export out/
  bassline generate --prompt-file prompt.md --json > run.json
  bassline generate "anything" --model scripted      try it without a model
  bassline fix add.py --tests tests.py --in-place    until the tests pass
  bassline test --solution add.py --tests tests.py

If BASSLINE_HOME is set, all data (models, settings, history) is kept in that folder."""

_GENERATE = """\
Prints the code of the best candidate on stdout and everything else on stderr.

exit code:
  0    a candidate passes the tests (without tests: at least one wrote some code)
  1    no candidate does
  2    the request cannot be met; a message says why
  130  Ctrl-C; what was there by then is printed and exported"""

_FIX = """\
Goes on until a correction passes the tests, or --max-candidates or --time-budget is reached.

  fix FILE --tests T      a file of yours; it stays as it is unless --in-place is given
  fix RUN CANDIDATE       a candidate of the history: its corrections join the run
  fix RUN                 its best failing candidate

The tests may import FILE by its own name, as in "from slugs import slug" for slugs.py.
Prints the best code on stdout and everything else on stderr. A file that is called 12 is written ./12.

exit code: 0 a candidate passes the tests, 1 none does, 2 the request cannot be met, 130 Ctrl-C"""

_RESUME = """\
Goes on with a run of the history that was stopped, was killed or found nothing, until a candidate
passes: with the model, the prompt and the seed that it has. The budget counts from now.

exit code: 0 a candidate passes the tests, 1 none does, 2 the request cannot be met, 130 Ctrl-C"""

_TEST = """\
Runs the tests on one file, in the same box as the candidates of a model.
Tests are bare asserts, which see the solution's names directly; a pytest file, which says
"from solution import ..."; def check(candidate); a doctest; examples ("input:", "output:");
or commands ("$ python solution.py --self-test"), whose exit code decides.

exit code: 0 it passes, 1 it does not, 2 the request cannot be met"""


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse hides that its help could not be written."""
        if file is sys.stdout:
            file.write(message)
        else:
            put(sys.stderr, message)

    def error(self, message: str) -> NoReturn:
        """One sentence and the way to help, instead of the whole usage."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser(program: str = "bassline") -> argparse.ArgumentParser:
    top = _Parser(
        prog=program,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--demo", action="store_true", help="open the window with recorded answers instead of a model")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    _add_generate(commands)
    _add_fix(commands)
    _add_resume(commands)
    _add_test(commands)
    add_models(commands)
    add_history(commands)
    add_servers(commands)
    add_doctor(commands)
    add_desktop_entry(commands)
    _add_log(top)
    for command in commands.choices.values():
        _add_log(command, argparse.SUPPRESS)
    return top


def _add_log(command: argparse.ArgumentParser, default: Any = None) -> None:
    """Before the command's name as behind it; ``default`` SUPPRESS: what stood before it stays."""
    log = command.add_argument_group("log")
    log.add_argument(
        "--log", type=Path, default=default, metavar="FILE", help="append to FILE what Bassline decides, and why"
    )
    log.add_argument(
        "--log-text", action="store_true", default=default or False, help="include prompts, answers and code"
    )


def request_of(arguments: argparse.Namespace, prompt: str, suffix: str = "") -> Request:
    """``suffix``: the text after the gap, when one is to be filled.

    Raises BadRequest with a sentence when a value is out of range.
    """
    POLICIES.check(arguments.policy)
    values = _values(arguments, REQUEST)
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    goal = arguments.goal or ("first" if arguments.tests else "all")
    return Request(
        prompt=prompt,
        sampling=sampling_of(arguments),
        speculation=Speculation(**_values(arguments, SPECULATION)),
        suffix=suffix,
        overrides=ladder_of(arguments),
        **{**values, "seed": seed, "goal": goal},
    )


def _values(arguments: argparse.Namespace, part: str) -> dict[str, Any]:
    return {parameter.name: getattr(arguments, parameter.name) for parameter in carried_by(part)}


def budget_of(arguments: argparse.Namespace) -> Budget | None:
    """What may be spent until one passes; None for a run that asks once. Raises BadRequest."""
    if not arguments.until_pass:
        if arguments.max_candidates is not None:
            raise BadRequest("--max-candidates is for a run that goes on until one passes; add --until-pass.")
        return None
    seconds = Budget.seconds if arguments.time_budget_s is None else arguments.time_budget_s
    return Budget(Budget.candidates if arguments.max_candidates is None else arguments.max_candidates, seconds)


def choice_of(arguments: argparse.Namespace) -> ModelChoice:
    """Raises BadServer and NoSuchServer for a server that cannot be."""
    server = find(arguments.server) if arguments.server else None
    return ModelChoice(
        model=server.model if server and arguments.model == ModelChoice.model else arguments.model,
        **_values(arguments, MODEL),
        device=arguments.device,
        offline=arguments.offline,
        server=server.address if server else "",
        ignore_fit=arguments.ignore_fit,
    )


def _add_generate(commands: "argparse._SubParsersAction[_Parser]") -> None:
    command = commands.add_parser(
        "generate",
        help="write candidates for a prompt and pick one by your tests",
        description="Write candidates for a prompt and pick one by your tests.",
        epilog=_GENERATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("prompt", nargs="?", help="what the code should do; - reads it from stdin")
    command.add_argument("--prompt-file", metavar="FILE", help="read the prompt from a file; - is stdin")
    add_parameter(command, CANDIDATES, "-n")
    command.add_argument("--tests", type=Path, metavar="FILE", help="tests in Python: bare asserts or a pytest file")
    command.add_argument(
        "--stop-at-first-pass", action="store_true", help="stop the others when a candidate passes its tests"
    )
    command.add_argument(
        "--until-pass",
        action="store_true",
        help="keep going until a candidate passes its tests, with further candidates, repairs of the best failing one "
        "and the next larger model on this computer; stops at --max-candidates or --time-budget",
    )
    add_budget(command)
    add_comparison(command)
    command.add_argument("--fix", metavar="FILE", help="correct this file instead: the same as 'fix FILE'")
    add_results(command)
    add_consent(command)
    add_sampling(command)
    add_speculation(command)
    add_model(command)


def _add_fix(commands: "argparse._SubParsersAction[_Parser]") -> None:
    command = commands.add_parser(
        "fix",
        help="correct a file, or a candidate of an earlier run, until its tests pass",
        description="Correct a file, or a candidate of an earlier run, until its tests pass.",
        epilog=_FIX,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("target", nargs="+", metavar="TARGET", help="FILE, - for stdin, RUN, or RUN CANDIDATE")
    command.add_argument("--tests", type=Path, metavar="FILE", help="the tests; those of the run unless given")
    command.add_argument("--prompt", metavar="TEXT", help="what the file is for, in words; it helps the model")
    command.add_argument(
        "--in-place", action="store_true", help="write the correction that passes into FILE, in one step"
    )
    command.add_argument(
        "-n",
        "--candidates",
        type=int,
        metavar="N",
        help="ask for so many corrections, once, instead of going on until one passes",
    )
    command.add_argument("--until-pass", action="store_true", help="go on until one passes, as it does without -n")
    command.add_argument(
        "--stop-at-first-pass", action="store_true", help="with -n: stop the others when one passes its tests"
    )
    add_budget(command)
    add_results(command)
    add_consent(command)
    add_sampling(command, modes=False)
    add_speculation(command)
    add_model(command)


def _add_resume(commands: "argparse._SubParsersAction[_Parser]") -> None:
    command = commands.add_parser(
        "resume",
        help="go on with an earlier run until a candidate passes",
        description="Go on with an earlier run until a candidate passes.",
        epilog=_RESUME,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("target", metavar="RUN", help="a number that 'history' lists")
    command.add_argument("--tests", type=Path, metavar="FILE", help="other tests than those of the run")
    command.add_argument(
        "--time-budget",
        dest="time_budget_s",
        type=float,
        metavar="SECONDS",
        help=f"when to give up (default: {Budget.seconds:.0f})",
    )
    add_budget(command)
    add_results(command)
    add_consent(command)
    add_model(command)


class _Unsaid(list[str]):
    """Stands for every option that is not written; a list, since options that may be given often add to theirs."""


def given(words: list[str]) -> frozenset[str]:
    """Which of the command's options and arguments ``words`` name; everything else stands at its default."""
    silent, unsaid = parser(), _Unsaid()
    nothing = dict.fromkeys(vars(silent.parse_args(words)), unsaid)
    for action in silent._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.set_defaults(**nothing)
    return frozenset(name for name, value in vars(silent.parse_args(words)).items() if value is not unsaid)


def _add_test(commands: "argparse._SubParsersAction[_Parser]") -> None:
    command = commands.add_parser(
        "test",
        help="run tests on one file",
        description="Run tests on one file.",
        epilog=_TEST,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("--solution", type=Path, required=True, metavar="FILE", help="the code to test")
    command.add_argument(
        "--tests", type=Path, required=True, metavar="FILE", help="the tests, in one of the forms below"
    )
    command.add_argument("--json", action="store_true", help="print the report as one JSON object")
    add_consent(command)
