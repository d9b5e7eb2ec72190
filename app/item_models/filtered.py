"""Some of the candidates: all, passed, failed, distinct or running ones."""

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel

from app.item_models.candidates import CandidatesModel
from engine.contract import CandidateState
from engine.session.candidate import Candidate

Index = QModelIndex | QPersistentModelIndex

FILTERS: dict[str, Callable[[Candidate], bool]] = {
    "all": lambda candidate: True,
    "passed": lambda candidate: candidate.passed,
    "failed": lambda candidate: (
        candidate.state == CandidateState.FAILED or (candidate.report is not None and not candidate.passed)
    ),
    "distinct": lambda candidate: candidate.same_as is None,
    "running": lambda candidate: not candidate.ended,
}


class FilteredCandidates(QSortFilterProxyModel):
    """The rows of a CandidatesModel that the filter lets through, in their order."""

    def __init__(self, model: CandidatesModel, parent: QObject | None = None):
        super().__init__(parent)
        self._model, self.filter = model, "all"
        self.setSourceModel(model)

    def choose(self, name: str) -> None:
        """One of FILTERS."""
        self.filter = name
        self.invalidate()

    def counts(self) -> dict[str, int]:
        """How many candidates each filter lets through."""
        every = [c for row in range(self._model.rowCount()) if (c := self._model.candidate(row)) is not None]
        return {name: sum(map(holds, every)) for name, holds in FILTERS.items()}

    def candidate(self, index: Index) -> Candidate | None:
        return self._model.candidate(self.mapToSource(index).row()) if index.isValid() else None

    def index_of(self, number: int) -> QModelIndex:
        """Not valid when the filter hides it."""
        row = self._model.row_of(number)
        return self.mapFromSource(self._model.index(row)) if row >= 0 else QModelIndex()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:  # noqa: N802
        candidate = self._model.candidate(row)
        return candidate is not None and FILTERS[self.filter](candidate)
