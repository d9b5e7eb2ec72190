"""A new parameter of a run is one entry of the table, and a field of the class that carries it."""

import importlib.util
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.cli import sampling as cli_sampling
from app.cli.arguments import parser, request_of
from app.controllers.run_settings import RunSettings
from app.widgets.advanced import ROWS, AdvancedPanel
from app.widgets.fields import NumberField
from engine.contract import BadRequest, Sampling, parameters
from engine.contract.parameters import ADVANCED, PARAMETERS, SAMPLING, Parameter, Range, advanced
from engine.session import settings

ROOT = Path(__file__).parents[2]
TOY = Parameter(
    "top_a",
    SAMPLING,
    title="Top-a",
    help="Drop tokens below this share of the likeliest one's squared probability",
    default=0.25,
    range=Range(0, 1, step=0.05),
    metavar="A",
    place=ADVANCED,
)


@dataclass(frozen=True)
class ToySampling(Sampling):
    """What Sampling is with the parameter's field."""

    top_a: float = TOY.default


@dataclass(frozen=True)
class ToySettings(settings.Settings):
    sampling: Sampling = field(default_factory=ToySampling)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "PARAMETERS", (*PARAMETERS, TOY))
    monkeypatch.setattr(Sampling, "top_a", TOY.default, raising=False)
    monkeypatch.setattr(cli_sampling, "Sampling", ToySampling)


@pytest.fixture(scope="module")
def documentation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parameters_page", ROOT / ".ci" / "parameters.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sampled(*words: str) -> Any:
    """The sampling that the command line asks for with these words."""
    return request_of(parser().parse_args(["generate", "x", *words]), "x").sampling


@pytest.mark.usefixtures("toy")
def test_one_entry_puts_a_parameter_into_advanced(qtbot: QtBot, theme: object) -> None:
    panel = AdvancedPanel([])
    qtbot.addWidget(panel)
    box = panel.fields["top_a"]
    assert isinstance(box, NumberField)
    assert (box.accessibleName(), box.toolTip(), box.text()) == ("Top-a", TOY.help, "0.25")
    assert [label.text() for label in panel.findChildren(QLabel)][-1] == "Top-a"
    chosen = RunSettings(sampling=ToySampling(top_a=0.5))
    panel.apply(chosen)
    assert box.text() == "0.5"
    box.setText("0.75")
    assert panel.complete(chosen).sampling == ToySampling(top_a=0.75)
    box.setText("2")
    with pytest.raises(BadRequest, match="Top-a must be a number from 0 to 1"):
        panel.complete(chosen)


@pytest.mark.usefixtures("toy")
def test_one_entry_gives_an_option_with_help_and_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert sampled().top_a == 0.25
    assert sampled("--top-a", "0.5") == ToySampling(top_a=0.5)
    with pytest.raises(BadRequest, match=r"Top-a must be between 0 and 1, not 1\.5"):
        sampled("--top-a", "1.5")
    with pytest.raises(SystemExit):
        parser().parse_args(["generate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "--top-a A drop tokens below this share" in shown
    assert "squared probability (between 0 and 1; default: 0.25)" in shown


@pytest.mark.usefixtures("toy")
def test_one_entry_checks_what_the_settings_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "Sampling", ToySampling)
    monkeypatch.setattr(settings, "Settings", ToySettings)
    file = tmp_path / "settings.toml"
    settings.keep(ToySettings(sampling=ToySampling(top_a=0.5)), file)
    assert settings.load(file).settings.sampling == ToySampling(top_a=0.5)
    file.write_text("[sampling]\ntop_a = 7\ntop_p = 0.5\n")
    loaded = settings.load(file)
    assert loaded.settings.sampling == ToySampling(top_p=0.5)
    assert loaded.notices == ("settings.toml: top_a is passed over. Top-a must be between 0 and 1, not 7.0.",)


@pytest.mark.usefixtures("toy")
def test_one_entry_is_a_row_of_the_documentation(documentation: ModuleType) -> None:
    assert rf"| Top-a \* | `--top-a` | {TOY.help}. | between 0 and 1 | `0.25` |" in documentation.page()


def test_the_documentation_is_that_of_the_table(documentation: ModuleType) -> None:
    page = documentation.PAGE.read_text("utf-8")
    assert page == documentation.page(), "run: python .ci/parameters.py"


def test_every_parameter_of_advanced_has_its_place_there(qtbot: QtBot, theme: object) -> None:
    panel = AdvancedPanel([])
    qtbot.addWidget(panel)
    assert sorted(panel.fields) == sorted(each.name for each in advanced()) == sorted(n for row in ROWS for n in row)
    names = {box.accessibleName() for box in panel.fields.values()}
    assert names == {each.title for each in advanced()}


def test_what_advanced_is_given_comes_back(qtbot: QtBot, theme: object) -> None:
    panel = AdvancedPanel([])
    qtbot.addWidget(panel)
    plain = RunSettings()
    assert panel.complete(plain) == plain
    changed = replace(
        plain,
        sampling=Sampling(
            top_p=0.5, top_k=40, min_p=0.1, repetition_penalty=1.1, presence_penalty=-1, code_stop="block"
        ),
        speculation=replace(plain.speculation, drafter="none", policy="fixed:4", acceptance="rejection"),
        precision="int8",
        draft="small",
        goal="first",
        width=3,
        system="",
    )
    panel.apply(changed)
    assert panel.complete(plain) == changed


def test_every_option_has_its_limits_and_default_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["generate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for parameter in PARAMETERS:
        assert parameter.flag in shown
        assert parameter.limits in shown
        assert f"default: {parameter.default_words or parameter.default})" in shown
