"""The menu entry of a Linux desktop: where it lies, what it starts, and whose files are touched."""

import configparser
import re
import sys
from pathlib import Path

import pytest

from app.cli import desktop_entry, main
from app.cli.desktop_entry import exec_line, files

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="menus of this kind are for Linux")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(desktop_entry, "own_command", lambda: ["/opt/my apps/bassline"])
    return tmp_path / "data"


def test_install_writes_entry_and_icon_and_says_where(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["desktop-entry", "install"]) == 0
    entry, icon = data / "applications/bassline.desktop", data / "icons/hicolor/scalable/apps/bassline.svg"
    assert capsys.readouterr().out.splitlines() == [str(entry), str(icon)]
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = lambda optionstr: optionstr
    read.read(entry)
    fields = read["Desktop Entry"]
    assert (fields["Type"], fields["Name"], fields["Icon"]) == ("Application", "Bassline", icon.stem)
    assert fields["Exec"] == '"/opt/my apps/bassline"'
    assert "<svg" in icon.read_text()


def test_both_can_be_repeated(data: Path) -> None:
    for _ in range(2):
        assert main(["desktop-entry", "install"]) == 0
    before = {path: path.stat().st_mtime_ns for path in files()}
    main(["desktop-entry", "install"])
    assert {path: path.stat().st_mtime_ns for path in files()} == before
    neighbour = data / "applications" / "other.desktop"
    neighbour.write_text("[Desktop Entry]\n")
    for _ in range(2):
        assert main(["desktop-entry", "remove"]) == 0
    assert [path for path in data.rglob("*") if path.is_file()] == [neighbour]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("what", ["install", "remove"])
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_files_of_others_stay(data: Path, which: int, what: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = files()[which]
    foreign.parent.mkdir(parents=True)
    if kind == "file":
        foreign.write_text("mine\n")
    else:
        foreign.symlink_to(data / "nowhere")
    assert main(["desktop-entry", what]) == 2
    assert f"{foreign} was not written by Bassline" in capsys.readouterr().err
    assert [path for path in data.rglob("*") if path.is_file() or path.is_symlink()] == [foreign]
    assert kind != "file" or foreign.read_text() == "mine\n"


def test_an_older_entry_of_ours_is_replaced(data: Path) -> None:
    main(["desktop-entry", "install"])
    entry = files()[0]
    entry.write_text(entry.read_text().replace("/opt/my apps", "/elsewhere"))
    main(["desktop-entry", "install"])
    assert "/elsewhere" not in entry.read_text()


def test_a_relative_data_home_is_ignored_as_the_specification_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert files()[0] == tmp_path / ".local/share/applications/bassline.desktop"


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (["/usr/bin/bassline"], "/usr/bin/bassline"),
        (["/a b/python", "/a b/main.py"], '"/a b/python" "/a b/main.py"'),
        (["/opt/100%/bassline"], "/opt/100%%/bassline"),
        (["/o'ne/bassline"], '"/o\'ne/bassline"'),
        (["/$HOME/`x`/bassline"], '"/\\\\$HOME/\\\\`x\\\\`/bassline"'),
        (["/ünter/bassline"], '"/ünter/bassline"'),
    ],
)
def test_the_program_is_quoted_as_desktops_read_it(program: list[str], line: str) -> None:
    assert exec_line(program) == line
    assert as_desktops_read(line) == program


def as_desktops_read(line: str) -> list[str]:
    """By the specification: the escapes of a string first, then the quoting of arguments, then the field codes."""
    value = line.replace("\\\\", "\\")
    words = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', value)
    return [(re.sub(r"\\(.)", r"\1", quoted) if quoted else bare).replace("%%", "%") for quoted, bare in words]


def test_other_systems_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["desktop-entry", "install"]) == 2
    assert "Linux desktops" in capsys.readouterr().err
