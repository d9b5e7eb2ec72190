"""What driver and installation say of NVIDIA's GPUs, and where models run then."""

import importlib.util
import os
import stat
import sys
from pathlib import Path

import pytest

from engine.backends import cuda, registry
from engine.backends.device import Gpu


@pytest.fixture(autouse=True)
def forget():
    cuda.nvidia_gpus.cache_clear()
    yield
    cuda.nvidia_gpus.cache_clear()


def answer_as_driver(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    command = folder / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script plays the driver")
class TestDriver:
    def test_gpus(self, monkeypatch, tmp_path):
        lines = (
            "echo 'NVIDIA H200, 143771, 143155, 570.1'\necho 'Odd, name, [N/A], [N/A], 570.1'\necho 'B, 8192, 1, 570.1'"
        )
        answer_as_driver(monkeypatch, tmp_path, lines)
        first, second = cuda.nvidia_gpus()
        assert first == Gpu("NVIDIA H200", 143771 << 20, 143155 << 20, "570.1", "cuda")
        assert second.name == "B"

    def test_memory_of_one_gpu_and_of_all(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 10, 570.1'\necho 'B, 8192, 5, 570.1'")
        assert registry.named("cuda").memory_free() == 15 << 20  # a model may be spread over them
        assert registry.named("cuda:1").memory_free() == 5 << 20
        assert registry.named("cuda:2").memory_free() is None

    def test_a_driver_that_fails(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'has failed'; exit 9")
        assert cuda.nvidia_gpus() == ()

    def test_default_kind_needs_both_gpu_and_build(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 8000, 570.1'")
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: True)
        assert registry.default_kind() == "cuda"
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: False)
        assert registry.default_kind() == "cpu"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script plays the driver")
class TestAutomaticChoice:
    """Where models run when nobody says, on a machine with a GPU and a torch that could use it."""

    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 8000, 470.1'")
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: True)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    @pytest.mark.parametrize(
        ("driver", "build", "kind"),
        [
            ((11, 4), (13, 0), "cpu"),
            ((12, 8), (13, 0), "cpu"),
            ((12, 2), (12, 8), "cuda"),  # a driver serves every CUDA of its own major version
            ((13, 0), (12, 8), "cuda"),
            (None, (13, 0), "cuda"),  # nobody knows: torch will say
            ((11, 4), None, "cuda"),
        ],
    )
    def test_a_driver_too_old_for_torch(self, monkeypatch, driver, build, kind):
        monkeypatch.setattr(cuda, "_cuda_of_driver", lambda: driver)
        monkeypatch.setattr(cuda, "_cuda_of_torch", lambda: build)
        assert registry.default_kind() == kind
        if kind == "cpu":
            assert registry.why_on_cpu() == (
                f"The NVIDIA driver is too old for this torch (it knows CUDA {driver[0]}.{driver[1]}, torch needs "
                "CUDA 13.0); update the driver to use the GPU. Models run on the processor."
            )
            assert cuda.Cuda().why_not().endswith("Or choose --device cpu.")
        else:
            assert registry.why_on_cpu() == cuda.Cuda().why_not() == ""

    @pytest.mark.parametrize(("visible", "kind"), [("", "cpu"), ("-1", "cpu"), ("0", "cuda"), ("1,0", "cuda")])
    def test_gpus_that_a_person_hides(self, monkeypatch, visible, kind):
        monkeypatch.setattr(cuda, "_cuda_of_driver", lambda: (13, 0))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert registry.default_kind() == kind
        assert ("CUDA_VISIBLE_DEVICES" in registry.why_on_cpu()) == (kind == "cpu")

    def test_without_a_gpu_nothing_is_to_be_explained(self, monkeypatch):
        monkeypatch.setattr(cuda, "nvidia_gpus", lambda: ())
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert (registry.default_kind(), registry.why_on_cpu()) == ("cpu", "")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("cuda: Optional[str] = '13.0'", (13, 0)),
        ("cuda = '12.8'", (12, 8)),
        ("cuda: Optional[str] = None", None),
        ("rocm: Optional[str] = '6.4'", None),
    ],
)
def test_what_torch_was_built_with_is_read_without_loading_it(monkeypatch, tmp_path, line, version):
    (tmp_path / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\n")
    found = importlib.util.spec_from_file_location("torch", tmp_path / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    assert cuda._cuda_of_torch() == version
