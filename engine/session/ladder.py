"""The models that a run may go on with when the one it began with does not get there: larger ones that are here."""

from collections.abc import Iterable
from dataclasses import replace

from engine.contract import ModelChoice
from engine.models.library import ListedModel, listed
from engine.session.arms import Model

_READ = 0.5e9  # bytes of weights a second, read and unpacked
_START_S = 2.0
_SLOWER = 0.6  # 3.1 times the parameters took 1.9 times as long per candidate (int8, two cores, benchmarks.solving)


def ladder(choice: ModelChoice, rows: Iterable[ListedModel] | None = None) -> list[Model]:
    """The model of ``choice`` first, then those of the catalog that are larger, here, and fit, smallest first.

    Only the first for a server, and for a model that is not in the catalog: nobody knows what is larger. Reads the
    disk; nothing is fetched.
    """
    rows = list(listed(precision=choice.precision) if rows is None else rows)
    first = next((row for row in rows if _is(row, choice)), None)
    if choice.server or first is None:
        return [Model(choice, choice.model)]
    larger = (row for row in rows if row.parameters > first.parameters and row.here and row.fits)
    steps = [first, *sorted(larger, key=lambda row: row.parameters)]
    return [_model(row, replace(choice, model=row.name if at else choice.model), first) for at, row in enumerate(steps)]


def stand_in(choice: ModelChoice, rows: Iterable[ListedModel] | None = None) -> ListedModel | None:
    """A smaller model of the catalog that can be used while the one of ``choice`` is downloaded.

    The largest one that is here; where none is, the largest that takes at most half as long to download. None for a
    model that is here already, and for one that is not in the catalog. Reads the disk; nothing is fetched.
    """
    rows = list(listed(precision=choice.precision) if rows is None else rows)
    wanted = next((row for row in rows if _is(row, choice)), None)
    if choice.server or wanted is None or wanted.here:
        return None
    smaller = [row for row in rows if row.source == "Catalog" and row.fits and row.parameters < wanted.parameters]
    here = [row for row in smaller if row.here]
    soon = [row for row in smaller if row.download_bytes <= wanted.download_bytes / 2]
    return max(here or soon, key=lambda row: row.parameters, default=None)


def _is(row: ListedModel, choice: ModelChoice) -> bool:
    return row.default if choice.model == ModelChoice.model else row.name == choice.model


def _model(row: ListedModel, choice: ModelChoice, first: ListedModel) -> Model:
    if row is not first:
        choice = replace(choice, draft="", offline=True)
    bytes_ = row.converted_bytes or row.original_bytes or row.parameters
    return Model(choice, row.name, (row.parameters / first.parameters) ** _SLOWER, _START_S + bytes_ / _READ)
