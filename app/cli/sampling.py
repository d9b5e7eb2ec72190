"""The sampling options of the command line, and what they ask for."""

import argparse
from dataclasses import replace

from engine.contract import Request, Sampling
from engine.contract.request import CODE_STOPS, MODES

LADDER = ".."  # between the two ends of a range of temperatures


def add_sampling(command: argparse.ArgumentParser, modes: bool = True) -> None:
    """``modes``: what is asked may also be the start of the code, or the code around a gap."""
    group = command.add_argument_group("sampling")
    group.add_argument(
        "--temperature",
        type=_temperatures,
        default=(Sampling.temperature,) * 2,
        metavar="T",
        help="0 always takes the likeliest token; 0.2..1.2 spreads the candidates evenly over that range, the first "
        f"coolest (default: {Sampling.temperature})",
    )
    group.add_argument(
        "--top-p",
        type=float,
        default=Sampling.top_p,
        metavar="P",
        help="keep the likeliest tokens that hold this much probability (default: %(default)s)",
    )
    group.add_argument(
        "--top-k",
        type=int,
        default=Sampling.top_k,
        metavar="K",
        help="keep the K likeliest tokens (default: no limit)",
    )
    group.add_argument(
        "--min-p",
        type=float,
        default=Sampling.min_p,
        metavar="P",
        help="keep tokens at least this share as likely as the likeliest (default: no limit)",
    )
    group.add_argument(
        "--repetition-penalty",
        type=float,
        default=Sampling.repetition_penalty,
        metavar="X",
        help="above 1: tokens of prompt and answer become less likely to come again (default: %(default)s, none)",
    )
    group.add_argument(
        "--presence-penalty",
        type=float,
        default=Sampling.presence_penalty,
        metavar="X",
        help="above 0: so do tokens of the answer, once (default: %(default)s, none)",
    )
    group.add_argument(
        "--frequency-penalty",
        type=float,
        default=Sampling.frequency_penalty,
        metavar="X",
        help="above 0: so do tokens of the answer, each time they come (default: %(default)s, none)",
    )
    group.add_argument(
        "--max-tokens",
        type=int,
        default=Sampling.max_tokens,
        metavar="N",
        help="cut a candidate after so many tokens (default: %(default)s)",
    )
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="the same seed gives the same candidates (default: a random one, which is printed)",
    )
    group.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="end a candidate before this text; may be given several times",
    )
    group.add_argument(
        "--stop-at",
        choices=[stop for stop in CODE_STOPS if stop],
        default="",
        help="end a candidate where its first block of code closes, or, in completion mode, where its first top-level "
        "function is over",
    )
    group.add_argument(
        "--time-budget",
        type=float,
        metavar="SECONDS",
        help="cut what is not finished by then; with --until-pass, when to give up (default there: 120)",
    )
    group.add_argument(
        "--system",
        default=Request.system,
        metavar="TEXT",
        help="instructions to a chat model before the prompt; '' for the model's own (default: to answer with one "
        "code block only)",
    )
    if not modes:
        command.set_defaults(mode="chat", suffix_file=None)
        return
    group.add_argument(
        "--mode",
        choices=MODES,
        default=Request.mode,
        help="chat: the prompt is a request; completion: it is the start of the code; fill-in-the-middle: it is the "
        "code before a gap (default: %(default)s)",
    )
    group.add_argument(
        "--suffix-file", metavar="FILE", help="read the code after the gap from a file, for fill-in-the-middle"
    )


def sampling_of(arguments: argparse.Namespace) -> Sampling:
    """Of the first candidate, and of all unless a ladder was asked for. Raises BadRequest."""
    return Sampling(
        temperature=arguments.temperature[0],
        top_p=arguments.top_p,
        top_k=arguments.top_k,
        max_tokens=arguments.max_tokens,
        stop=tuple(arguments.stop),
        min_p=arguments.min_p,
        repetition_penalty=arguments.repetition_penalty,
        presence_penalty=arguments.presence_penalty,
        frequency_penalty=arguments.frequency_penalty,
        code_stop=arguments.stop_at,
    )


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
