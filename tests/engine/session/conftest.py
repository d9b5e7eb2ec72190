"""Arms with chances of their own: these tests are about decisions, and rates are measured again now and then."""

import pytest

from engine.session import arms
from engine.session.arms import FRESH, LARGER, REPAIR, SHOWN_TEST, Chance, MeasuredChances

CHANCES = (Chance(FRESH, 0.4, 0.4), Chance(SHOWN_TEST, 0.4, 0.4), Chance(REPAIR, 0.1, 0.9), Chance(LARGER, 0.4, 0.8))


@pytest.fixture(autouse=True)
def chances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "_measured", lambda: MeasuredChances(0.0, CHANCES))
