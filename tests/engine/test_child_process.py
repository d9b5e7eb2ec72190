"""Children find this very program, from any folder and under every way Python can be told where to look."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine import child_process


@pytest.mark.parametrize("safe", ["", "1"])
def test_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: str) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise RuntimeError('another project')\n")
    monkeypatch.setenv("PYTHONSAFEPATH", safe)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, "-m", "engine.runner.service", "--never"]
    done = subprocess.run(command, cwd=child_process.ROOT, env=child_process.environment(), input=b"", timeout=60)
    assert done.returncode == 0
    assert child_process.environment()["PYTHONPATH"] == os.pathsep.join((str(child_process.ROOT), str(tmp_path)))


def test_an_isolated_parent_has_isolated_children(tmp_path: Path) -> None:
    """``python -I`` is for those who do not trust what the surroundings say."""
    code = f"""\
import subprocess, sys
sys.path.insert(0, {str(child_process.ROOT)!r})
from engine import child_process
print(sorted(n + "=" + v for n, v in child_process.environment().items() if n.startswith("PYTHON")))
"""
    surroundings = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONINSPECT": "1"}
    done = subprocess.run([sys.executable, "-I", "-c", code], env=surroundings, capture_output=True, text=True)
    assert done.stdout.strip() == str(["PYTHONNOUSERSITE=1", f"PYTHONPATH={child_process.ROOT}"])
