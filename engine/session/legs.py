"""The parts of a run, and whether its tests can be used at all."""

import warnings
from dataclasses import dataclass

from engine.contract import Request
from engine.runner.forms import BrokenTests, parse
from engine.session.provenance import Provenance


@dataclass(frozen=True)
class Leg:
    """A part of a run: what was asked at once, and of which models."""

    request: Request
    provenance: Provenance


def objection(tests: str) -> str:
    """Why these tests cannot be used, in a sentence; empty when they can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's tests
            parse(tests)
    except BrokenTests as error:
        return str(error)
    except RecursionError:
        return "Your tests are nested too deeply."
    return ""
