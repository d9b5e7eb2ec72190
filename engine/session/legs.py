"""The parts of a run."""

from dataclasses import dataclass

from engine.contract import Request
from engine.session.provenance import Provenance


@dataclass(frozen=True)
class Leg:
    """A part of a run: what was asked at once, and of which models."""

    request: Request
    provenance: Provenance
