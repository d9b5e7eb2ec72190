"""What ``pip install`` brings: complete, under one name, and a program that works away from its checkout."""

import ast
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.child_process import ROOT
from tests.packaging.conftest import CODE, WHOLE, Built, Installed

pytestmark = pytest.mark.timeout(3600 if WHOLE else 300)

FOLLOWERS = {"tokenizers": "transformers", "shiboken6": "pyside6-essentials"}  # pinned by what they belong to
OPTIONAL = {"torchao"}  # of the extra *quantized*
IMPORTS = {"PySide6": "pyside6-essentials", "shiboken6": "shiboken6", "tomli_w": "tomli-w", "_pytest": "pytest"}
OPEN = "the window is open"
RIGHT = "def add(a, b):\n    return a + b\n"


def files_of_the_checkout() -> set[str]:
    every = (path for name in CODE for path in (ROOT / name).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in every if "__pycache__" not in path.parts}


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


class TestContents:
    def test_the_wheel_has_every_file_and_no_other(self, built: Built) -> None:
        own = {name for name in names_in(built.wheel) if ".dist-info/" not in name}
        entry = {"bassline/__init__.py", "bassline/__main__.py"}
        rest = {name for name in files_of_the_checkout() if not name.startswith("app/package/")}
        assert own == entry | {f"bassline/{name}" for name in rest}

    def test_so_has_the_source_distribution(self, built: Built) -> None:
        with tarfile.open(built.source) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        assert files_of_the_checkout() <= names
        assert {"main.py", "setup.py", "pyproject.toml", "constraints.txt", "LICENSE", "README.md"} <= names
        assert not any(name.startswith("tests") for name in names)

    def test_whatever_is_imported_is_asked_for(self, built: Built) -> None:
        asked = required(built.wheel)
        missing = imported() - asked - OPTIONAL
        assert missing == FOLLOWERS.keys()
        for follower, owner in FOLLOWERS.items():
            assert owner in asked
            assert follower in {canonicalize_name(Requirement(line).name) for line in metadata.requires(owner) or ()}


def required(wheel: Path) -> set[str]:
    """What every installation brings, on some system."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
    wanted = [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]
    return {canonicalize_name(one.name) for one in wanted if "extra" not in str(one.marker)}


def imported() -> set[str]:
    """Distributions of others that app, engine or kernels import, anywhere."""
    found: set[str] = set()
    for name in CODE:
        for path in (ROOT / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found.update(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module)
    tops = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {*CODE, "bassline"}
    return {IMPORTS.get(name) or canonicalize_name(name) for name in tops}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody's own project, whose names are those of ours."""
    for name in CODE:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('this is another project')\n")
    (tmp_path / "main.py").write_text("raise RuntimeError('this is another project')\n")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "tests.py").write_text("assert add(2, 3) == 5\n")
    return tmp_path


def run(folder: Path, *words: object, **changes: str) -> "subprocess.CompletedProcess[str]":
    """Away from the checkout: not by folder, and not by a variable that pytest's process may have."""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "PYTHONPATH")
    surroundings = {name: value for name, value in os.environ.items() if name not in hidden} | changes
    command = list(map(str, words))
    return subprocess.run(
        command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=240, check=False
    )


class TestInstalled:
    def test_one_name_is_added_to_site_packages(self, installed: Installed) -> None:
        ours = installed.added if not WHOLE else {name for name in installed.added if "bassline" in name}
        assert ours == {"bassline", f"bassline-{metadata.version('bassline')}.dist-info"}
        assert not installed.added & {"app", "engine", "kernels", "resources", "main.py", "tests"}

    def test_the_doctor_knows_what_was_asked_for(self, installed: Installed, elsewhere: Path) -> None:
        done = run(elsewhere, installed.command, "doctor", "--json")
        assert done.stderr == ""
        found = {entry["name"]: entry for entry in json.loads(done.stdout)["Packages"]}
        assert {"torch", "pytest", "qasync", "torchao"} <= found.keys()
        assert not {"ruff", "hypothesis", "matplotlib"} & found.keys()
        assert {entry["state"] for entry in found.values()} <= {"good", "note"}

    @pytest.mark.sandbox
    @pytest.mark.parametrize("way", ["command", "module", "isolated module", "safe path"])
    def test_tests_run_in_their_boxes(self, installed: Installed, elsewhere: Path, way: str) -> None:
        program, changes = _ways(installed)[way]
        words = ["test", "--solution", "right.py", "--tests", "tests.py", "--json"]
        done = run(elsewhere, *program, *words, **changes)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["verdict"], report["mode"], report["weak"] == [] or report["weak"] == ["memory"]) == (
            *("pass", "split"),
            True,
        )

    @pytest.mark.sandbox
    def test_the_boxes_do_not_see_the_program(self, installed: Installed, elsewhere: Path) -> None:
        package = installed.packages.resolve() / "bassline"
        (elsewhere / "right.py").write_text(
            f"import os\ndef seen():\n    return [f for _, _, files in os.walk({str(package)!r}) for f in files]\n"
        )
        (elsewhere / "tests.py").write_text(
            "assert sorted(name for name in seen() if name.endswith('.py')) == ['__init__.py', '__main__.py']\n"
        )
        done = run(elsewhere, installed.command, "test", "--solution", "right.py", "--tests", "tests.py")
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(list(package.rglob("*.py"))) > 100

    def test_recorded_answers_are_found(self, installed: Installed, elsewhere: Path) -> None:
        done = run(elsewhere, installed.command, "generate", "anything", "--model", "scripted", "-n", "1")
        assert done.returncode == 0, done.stderr
        assert "def roman_to_int" in done.stdout

    @pytest.mark.real_model
    @pytest.mark.sandbox
    def test_a_model_writes_and_tests_pick(self, installed: Installed, elsewhere: Path, small_model: str) -> None:
        options = ["-n", "2", "--seed", "3", "--max-tokens", "48", "--tests", "tests.py", "--log", "run.log", "--json"]
        prompt = "Write a Python function add(a, b) that returns the sum of a and b."
        done = run(elsewhere, installed.command, "generate", prompt, "--model", small_model, *options)
        assert done.returncode in (0, 1), done.stderr
        told = json.loads(done.stdout)
        assert [candidate["tests"]["verdict"] in ("pass", "fail") for candidate in told["candidates"]] == [True, True]
        log = (elsewhere / "run.log").read_text()
        assert f"ready: {small_model} on cpu in int8" in log
        assert "engine.runner.service: boxes by bubblewrap" in log
        assert "sum of a and b" not in log

    def test_the_window_opens_and_closes(self, installed: Installed, elsewhere: Path) -> None:
        home, log = elsewhere / "home", elsewhere / "window.log"
        surroundings = os.environ | {"QT_QPA_PLATFORM": "offscreen", "BASSLINE_HOME": str(home)}
        program = subprocess.Popen(
            [installed.command, "--log", log], cwd=elsewhere, env=surroundings, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 60
        while OPEN not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
            assert program.poll() is None, program.communicate()[1]
            time.sleep(0.1)
        program.send_signal(signal.SIGTERM)
        _, errors = program.communicate(timeout=60)
        assert program.returncode == 0, errors
        assert "Traceback" not in errors
        assert OPEN in log.read_text()

    def test_without_qt_the_commands_work_and_the_window_says_what_it_needs(
        self, installed: Installed, elsewhere: Path
    ) -> None:
        code = """\
import sys
for name in ("PySide6", "shiboken6", "qasync"):
    sys.modules[name] = None
from bassline.__main__ import main
sys.exit(main())
"""
        done = run(elsewhere, installed.python, "-c", code, "generate", "x", "--model", "scripted", "-n", "1")
        assert done.returncode == 0, done.stderr
        done = run(elsewhere, installed.python, "-c", code, QT_QPA_PLATFORM="offscreen")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "The window needs the package PySide6" in done.stderr

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="menus of this kind are for Linux")
    def test_the_menu_entry_starts_the_installed_command(self, installed: Installed, elsewhere: Path) -> None:
        data = elsewhere / "data"
        done = run(elsewhere, installed.command, "desktop-entry", "install", XDG_DATA_HOME=str(data))
        assert done.returncode == 0, done.stderr
        entry = (data / "applications" / "bassline.desktop").read_text()
        assert f"\nExec={installed.command}\n" in entry


def _ways(installed: Installed) -> dict[str, tuple[list[Any], dict[str, str]]]:
    python = installed.python
    return {
        "command": ([installed.command], {}),
        "module": ([python, "-m", "bassline"], {}),
        "isolated module": ([python, "-I", "-m", "bassline"], {"PYTHONPATH": str(ROOT / "tests")}),
        "safe path": ([installed.command], {"PYTHONSAFEPATH": "1"}),
    }
