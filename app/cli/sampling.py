"""The sampling options of the command line, and what they ask for."""

import argparse
from dataclasses import replace

from app.cli.parameters import add_parameter
from engine.contract import Request, Sampling, parameters
from engine.contract.parameters import (
    CANDIDATES,
    GOAL,
    MODE,
    REQUEST,
    SAMPLING,
    SEED,
    STOP,
    TEMPERATURE,
    TIME_BUDGET,
    WIDTH,
)
from engine.session.arms import Budget

LADDER = ".."  # between the two ends of a range of temperatures
_ELSEWHERE = (CANDIDATES, GOAL, WIDTH)  # in another group of options
_MORE = {  # what is true on the command line only
    TEMPERATURE: f"0.2{LADDER}1.2 spreads the candidates evenly over that range, the first coolest",
    SEED: "it is printed",
    STOP: "may be given several times",
    TIME_BUDGET: f"with --until-pass, when to give up, by default after {Budget.seconds:g} seconds",
}


def add_sampling(command: argparse.ArgumentParser, modes: bool = True) -> None:
    """``modes``: what is asked may also be the start of the code, or the code around a gap."""
    group = command.add_argument_group("sampling")
    elsewhere = _ELSEWHERE if modes else (*_ELSEWHERE, MODE)
    ladder = {"type": _temperatures, "default": (TEMPERATURE.default,) * 2}
    for parameter in parameters.PARAMETERS:
        if parameter.part in (SAMPLING, REQUEST) and parameter not in elsewhere:
            changes = ladder if parameter is TEMPERATURE else {}
            add_parameter(group, parameter, more=_MORE.get(parameter, ""), **changes)
    if not modes:
        command.set_defaults(mode=Request.mode, suffix_file=None)
        return
    group.add_argument(
        "--suffix-file", metavar="FILE", help="read the code after the gap from a file, for fill-in-the-middle"
    )


def sampling_of(arguments: argparse.Namespace) -> Sampling:
    """Of the first candidate, and of all unless a ladder was asked for. Raises BadRequest."""
    values = {parameter.name: getattr(arguments, parameter.name) for parameter in parameters.carried_by(SAMPLING)}
    return Sampling(**{**values, "temperature": arguments.temperature[0], "stop": tuple(arguments.stop)})


def ladder_of(arguments: argparse.Namespace) -> dict[int, Sampling]:
    """The candidates' own samplings, by number: temperatures in even steps. Raises BadRequest."""
    low, high = arguments.temperature
    if low == high:
        return {}
    steps = max(1, arguments.candidates - 1)
    base = sampling_of(arguments)
    return {
        1 + step: replace(base, temperature=round(low + (high - low) * step / steps, 4))
        for step in range(arguments.candidates)
    }


def _temperatures(text: str) -> tuple[float, float]:
    """The ends of a ladder; the same for a single temperature."""
    first, dots, last = text.partition(LADDER)
    try:
        return float(first), float(last if dots else first)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a range such as 0.2..1.2") from None
