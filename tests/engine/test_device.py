"""The machine as found without torch."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine import device

CHECKOUT = Path(device.__file__).parents[1]


@pytest.fixture(autouse=True)
def forget():
    device.nvidia_gpus.cache_clear()
    yield
    device.nvidia_gpus.cache_clear()


def answer_as_driver(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    command = folder / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_survey_of_this_machine():
    machine = device.survey()
    assert 1 <= machine.cores <= (os.cpu_count() or 1)
    assert 0 < machine.memory_free <= machine.memory_total
    assert machine.processor


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script plays the driver")
class TestDriver:
    def test_gpus(self, monkeypatch, tmp_path):
        lines = (
            "echo 'NVIDIA H200, 143771, 143155, 570.1'\necho 'Odd, name, [N/A], [N/A], 570.1'\necho 'B, 8192, 1, 570.1'"
        )
        answer_as_driver(monkeypatch, tmp_path, lines)
        first, second = device.nvidia_gpus()
        assert first == device.Gpu("NVIDIA H200", 143771 << 20, 143155 << 20, "570.1")
        assert second.name == "B"

    def test_memory_of_one_gpu_and_of_all(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 10, 570.1'\necho 'B, 8192, 5, 570.1'")
        assert device.memory_free("cuda") == 15 << 20  # a model may be spread over them
        assert device.memory_free("cuda:1") == 5 << 20
        assert device.memory_free("cuda:2") is None

    def test_a_driver_that_fails(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'has failed'; exit 9")
        assert device.nvidia_gpus() == ()

    def test_default_kind_needs_both_gpu_and_build(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 8000, 570.1'")
        monkeypatch.setattr(device, "torch_build_has_cuda", lambda: True)
        assert device.default_kind() == "cuda"
        monkeypatch.setattr(device, "torch_build_has_cuda", lambda: False)
        assert device.default_kind() == "cpu"


def test_environment_respects_a_persons_own_values(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    device.prepare_environment()
    assert os.environ["OMP_WAIT_POLICY"] == "active"
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"


def test_light_modules_do_not_load_torch():
    """The window and ``models fetch`` use these before, or without, the second that torch takes."""
    names = (
        "device",
        "models.catalog",
        "models.preparation",
        "models.library",
        "models.conversion",
        "doctor.examination",
    )
    imports = "; ".join(f"import engine.{name}" for name in names)
    program = f"{imports}; import sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True, timeout=60)
