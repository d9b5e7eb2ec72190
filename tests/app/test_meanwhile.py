"""While a model downloads another one can be used: offered beside the progress, and by choosing it."""

import threading
from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from engine.contract import BasslineError, LoadCancelled
from engine.models import preparation
from engine.models.library import ListedModel
from engine.models.preparation import PreparedModel
from engine.scripted import Script, from_texts
from engine.session import ladder
from tests.app.stage import Stage

BIG, SMALL = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"


def listed(name: str, parameters: int, here: bool) -> ListedModel:
    bytes_ = 0 if here else parameters
    return ListedModel(
        name, f"Model {name[-4:].upper()}", "Catalog", parameters, 4096, "MIT", "", bytes_, 0, 0, here, here, False,
        True, "fits",
    )  # fmt: skip


class Download:
    """Stands for ``prepare``: it goes on until it is let go, or paused."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fails = False
        self.let_go = threading.Event()

    def __call__(self, name: str, *, progress: Callable[..., None], cancelled: Callable[[], bool]) -> PreparedModel:
        self.names.append(name)
        while not self.let_go.wait(0.01):
            if cancelled():
                raise LoadCancelled("Loading was stopped.")
        if self.fails:
            self.let_go.clear()
            raise BasslineError("The network is gone.")
        return _Prepared(name)  # type: ignore[return-value]


class _Prepared:
    def __init__(self, name: str):
        self.name = name


@pytest.fixture
def download(monkeypatch: pytest.MonkeyPatch) -> Download:
    result = Download()
    monkeypatch.setattr(preparation, "prepare", result)
    return result


def downloading_script(steps: int = 200) -> Script:
    texts = ["```python\ndef f():\n    return 1\n```"] * 2
    return from_texts(texts, chunk=6, load_stages=(("download", steps), ("weights", 1)))


@pytest.fixture
def away(open_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Stage:
    """The larger model is being downloaded for a run; the smaller one is on this computer, or is not."""
    here = getattr(request, "param", True)
    rows = [listed(BIG, 1_500_000_000, False), listed(SMALL, 500_000_000, here)]
    monkeypatch.setattr(ladder, "listed", lambda precision="auto": rows)
    on = open_stage(downloading_script())
    on.write()
    on.generate_with(BIG, 2)
    on.steps(3)
    assert on.window.loading.isVisible()
    return on


def button(on: Stage) -> QPushButton:
    return on.window.loading._meanwhile


def play(on: Stage) -> None:
    on.engines[-1].script = from_texts(["```python\ndef f():\n    return 1\n```"] * 2, chunk=6)
    on.until(lambda: on.controller.run is not None)
    on.until(lambda: not on.controller.situation().busy)


@pytest.mark.parametrize("away", [True, False], indirect=True, ids=["here", "to be downloaded"])
def test_a_smaller_one_is_offered_and_the_download_goes_on(away: Stage, download: Download) -> None:
    on = away
    on.wait_until(lambda: button(on).isVisible())
    assert button(on).text() == "Use Model 0.5B meanwhile"
    assert button(on).toolTip()
    button(on).click()
    QApplication.processEvents()
    assert on.window.bar.model == SMALL
    assert on.window.loading.isVisible()
    assert on.window.loading._stage.text() != "Stopping…"
    assert download.names == []  # one after another: what is waited for comes first
    play(on)
    run = on.controller.run
    assert run is not None
    assert run.provenance.choice is not None
    assert run.provenance.choice.model == SMALL
    assert [c.state for c in run.candidates.values()] == ["done", "done"]
    on.wait_until(lambda: download.names == [BIG])
    assert on.window.status.model_text.endswith(f"{BIG}: looking for a source")
    on.do("generate")  # it can be used all the while
    on.until(lambda: on.controller.situation().running)
    on.until(lambda: not on.controller.situation().busy)
    download.let_go.set()
    on.wait_until(lambda: on.window.status._offer.isVisible())
    assert BIG not in on.window.status.model_text.replace(f"{BIG} is ready to load.", "")
    on.window.status._offer.click()
    assert on.window.bar.model == BIG


def test_another_model_can_be_chosen_and_used_while_one_downloads(away: Stage, download: Download) -> None:
    on = away
    assert "still loading" in on.window.actions_by_id["generate"].toolTip()
    on.window.bar.choose_model(SMALL)
    on.window.bar.model_chosen.emit()
    assert on.window.actions_by_id["generate"].isEnabled()
    on.do("generate")
    play(on)
    run = on.controller.run
    assert run is not None
    assert run.provenance.choice is not None
    assert run.provenance.choice.model == SMALL
    on.wait_until(lambda: download.names == [BIG])
    download.let_go.set()
    on.wait_until(lambda: on.window.status._offer.isVisible())


@pytest.mark.parametrize("end", ["done", "paused", "failed"])
def test_the_download_goes_on_after_another_one_in_the_manager(
    away: Stage, download: Download, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    on, models = away, away.controller.models
    models.fetch("another")
    on.wait_until(lambda: download.names == ["another"])
    on.wait_until(lambda: button(on).isVisible())
    button(on).click()
    play(on)
    on.settle()
    assert on.controller.run is not None
    assert download.names == ["another"]  # one after another
    models.fetch(BIG)  # it waits already
    models.fetch("another")  # it is being downloaded
    download.fails = end == "failed"
    if end == "paused":
        models.pause()
    else:
        download.let_go.set()
    on.wait_until(lambda: download.names == ["another", BIG])
    download.fails = False
    download.let_go.set()
    on.wait_until(lambda: not models._fetching)
    assert download.names == ["another", BIG]


def test_cancel_gives_up_the_download_and_the_run(away: Stage, download: Download) -> None:
    on = away
    on.wait_until(lambda: button(on).isVisible())
    on.window.loading._cancel.click()
    on.until(lambda: not on.controller.situation().busy)
    on.settle()
    assert not on.window.loading.isVisible()
    assert on.controller.run is None
    assert download.names == []


def test_nothing_is_offered_once_the_download_is_over(away: Stage) -> None:
    on = away
    on.wait_until(lambda: button(on).isVisible())
    on.until(lambda: on.controller.loading.stage is not None and on.controller.loading.stage.stage == "weights")
    assert not button(on).isVisible()
    on.finish()


def test_a_download_in_the_manager_does_not_keep_anybody_from_generating(on: Stage, download: Download) -> None:
    on.generate(2)
    on.finish()
    on.controller.models.fetch(BIG)
    on.wait_until(lambda: download.names == [BIG])
    on.generate(2)
    on.finish()
    assert on.controller.run is not None
    assert [c.state for c in on.controller.run.candidates.values()] == ["done", "done"]
    download.let_go.set()
    on.wait_until(lambda: not on.controller.models._fetching)


def test_generate_waits_for_a_load_of_what_is_chosen_also_where_it_began_in_the_background(on: Stage) -> None:
    on.window.bar.choose_model(BIG)
    on.window.bar.model_chosen.emit()  # loads quietly
    assert on.controller.loading.preloading is not None
    on.do("generate")
    on.settle()
    assert on.controller.situation().loading
    assert not on.window.actions_by_id["generate"].isEnabled()
    on.window.bar.choose_model(SMALL)
    on.window.bar.model_chosen.emit()
    assert on.window.actions_by_id["generate"].isEnabled()
    on.window.bar.choose_model(BIG)
    on.window.bar.model_chosen.emit()
    on.finish()
