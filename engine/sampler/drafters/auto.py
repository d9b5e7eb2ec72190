"""The default drafter: the best one that the loaded models allow."""

from engine.contract import Request
from engine.sampler.acceptance import AcceptanceRule
from engine.sampler.drafters import Drafter, open_drafter
from engine.sampler.pair import LoadedPair


def open_best(pair: LoadedPair, request: Request, rule: AcceptanceRule) -> Drafter:
    name = "hybrid" if pair.ragged_draft else "speculator" if pair.speculator else "suffix"
    return open_drafter(name, pair, request, rule)
