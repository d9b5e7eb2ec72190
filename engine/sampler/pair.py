"""The models that are loaded, and what is known of them: all that a drafter can be made from."""

from dataclasses import dataclass, field

from engine.models.loaded_model import LoadedModel
from engine.sampler.cost_table import CostTable
from engine.sampler.drafters.copies import History
from engine.sampler.drafters.ngrams import Ngrams
from engine.sampler.drafters.speculator import Speculator
from engine.sampler.ragged_model import RaggedModel


@dataclass
class LoadedPair:
    """A target that passed its self-check, and perhaps a draft of the same vocabulary.

    ``history`` lives as long as they do: a follow-up, or more candidates, are copied from what was said before.
    ``ngrams`` and ``speculator``: what there is for this target.
    """

    target: LoadedModel
    ragged: RaggedModel
    context: int
    costs: CostTable
    ngrams: Ngrams | None = None
    speculator: Speculator | None = None
    history: History = field(default_factory=History)
    draft: LoadedModel | None = None
    ragged_draft: RaggedModel | None = None
    note: str = ""
