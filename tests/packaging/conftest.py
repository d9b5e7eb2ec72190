"""A wheel, built by way of the source distribution, and an environment outside the checkout that has it installed."""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.child_process import ROOT

# `make test-install` installs every dependency from the package index, too, which takes minutes and gigabytes.
# Otherwise the fresh environment reads this one's.
WHOLE = os.environ.get("BASSLINE_WHOLE_INSTALL") == "1"
CODE = ("app", "engine", "kernels", "resources")


@dataclass(frozen=True)
class Built:
    source: Path
    wheel: Path


@dataclass(frozen=True)
class Installed:
    """``added``: what the installation put into site-packages."""

    folder: Path
    packages: Path
    added: frozenset[str]

    @property
    def command(self) -> Path:
        return self.folder / ("Scripts/bassline.exe" if sys.platform == "win32" else "bin/bassline")

    @property
    def python(self) -> Path:
        return interpreter(self.folder)


def interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def pip(*words: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """From a copy of the checkout, so that nothing is left there."""
    folder = tmp_path_factory.mktemp("built")
    copy = folder / "checkout"
    for name in CODE:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (f for f in ROOT.iterdir() if f.is_file() and f.name != ".git"):
        shutil.copy(file, copy)
    build = "from setuptools import build_meta; build_meta.build_sdist('..')"
    done = subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (source,) = folder.glob("*.tar.gz")
    pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return Built(source, wheel)


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    variables = {"base": str(folder), "platbase": str(folder), "installed_base": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    how = ["--constraint", ROOT / "constraints.txt", "--ignore-installed", "--quiet"]
    if not WHOLE:
        how += ["--no-deps", "--no-index"]
        (packages / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    before = set(os.listdir(packages))
    pip("--python", interpreter(folder), "install", *how, built.wheel)
    return Installed(folder, packages, frozenset(set(os.listdir(packages)) - before))
