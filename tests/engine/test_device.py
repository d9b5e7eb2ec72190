"""The machine as found without torch."""

import importlib.util
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


def test_what_this_machine_has():
    machine = device.inspect_machine()
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


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script plays the driver")
class TestAutomaticChoice:
    """Where models run when nobody says, on a machine with a GPU and a torch that could use it."""

    @pytest.fixture(autouse=True)
    def gpu(self, monkeypatch, tmp_path):
        answer_as_driver(monkeypatch, tmp_path, "echo 'A, 8192, 8000, 470.1'")
        monkeypatch.setattr(device, "torch_build_has_cuda", lambda: True)
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
        monkeypatch.setattr(device, "_cuda_of_driver", lambda: driver)
        monkeypatch.setattr(device, "_cuda_of_torch", lambda: build)
        assert device.default_kind() == kind
        if kind == "cpu":
            assert device.why_on_cpu() == (
                f"The NVIDIA driver is too old for this torch (it knows CUDA {driver[0]}.{driver[1]}, torch needs "
                "CUDA 13.0); update the driver to use the GPU. Models run on the processor."
            )
            assert device.why_no_cuda().endswith("Or choose --device cpu.")
        else:
            assert device.why_on_cpu() == device.why_no_cuda() == ""

    @pytest.mark.parametrize(("visible", "kind"), [("", "cpu"), ("-1", "cpu"), ("0", "cuda"), ("1,0", "cuda")])
    def test_gpus_that_a_person_hides(self, monkeypatch, visible, kind):
        monkeypatch.setattr(device, "_cuda_of_driver", lambda: (13, 0))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert device.default_kind() == kind
        assert ("CUDA_VISIBLE_DEVICES" in device.why_on_cpu()) == (kind == "cpu")

    def test_without_a_gpu_nothing_is_to_be_explained(self, monkeypatch):
        monkeypatch.setattr(device, "nvidia_gpus", lambda: ())
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert (device.default_kind(), device.why_on_cpu()) == ("cpu", "")


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
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: found)
    assert device._cuda_of_torch() == version


def test_openmp_has_no_more_threads_than_a_share_of_the_processor(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(device.quota, "bound", lambda: 16)
    monkeypatch.setattr(device.quota, "share", lambda: 2.5)
    device.prepare_environment()
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert device.cores() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(device.quota, "share", lambda: None)
    device.prepare_environment()
    assert "OMP_NUM_THREADS" not in os.environ
