"""What driver and installation say of NVIDIA's GPUs, and where models run then."""

import importlib.util
import os
import stat
import sys
from pathlib import Path

import pytest
import torch

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


class TestInTorch:
    """What is asked of torch once it is loaded, of a ``torch.cuda`` that is played."""

    @pytest.fixture(autouse=True)
    def two_gpus(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda number: (10, 80) if number == 0 else (80, 80))

    @pytest.mark.parametrize(
        ("name", "size", "exceeds"), [("cuda", 9, False), ("cuda", 10, True), ("cuda:0", 99, False)]
    )
    def test_a_model_goes_to_all_where_the_first_is_too_small_and_nobody_chose_one(self, name, size, exceeds):
        assert registry.named(name).exceeds_first(size) is exceeds

    def test_a_single_one_is_never_too_small_to_be_tried(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        assert not registry.named("cuda").exceeds_first(99)

    def test_a_number_that_torch_does_not_find(self):
        assert registry.named("cuda").why_not_in_torch() == registry.named("cuda:1").why_not_in_torch() == ""
        assert registry.named("cuda:2").why_not_in_torch() == (
            "This torch finds no cuda:2 device; choose --device cpu or install a CUDA build."
        )

    def test_kernels_are_launched_where_the_model_is(self, monkeypatch):
        pytest.importorskip("kernels.attention.triton", reason="triton has no wheel for this platform")
        chosen = []
        monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
        for name in ("cuda:1", "cuda"):  # without a number: where torch is anyway
            registry.named(name).attention()
        assert chosen == [1]

    @pytest.mark.parametrize(("capability", "note"), [((7, 5), "This GPU is older than Ampere"), ((9, 0), "")])
    def test_an_old_one_runs_in_plain_pytorch(self, monkeypatch, capability, note):
        monkeypatch.setattr(cuda, "why_no_kernels", lambda: "")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda name: {"cuda:1": capability}[name])
        why = registry.named("cuda:1").why_plain()
        assert why.startswith(note)
        assert bool(why) == bool(note)

    def test_it_is_dead_once_an_operation_fails_for_want_of_anything_but_memory(self, monkeypatch):
        def fail(*size, device):
            raise {"cuda:0": RuntimeError("illegal memory access"), "cuda:1": torch.OutOfMemoryError("full")}[device]

        monkeypatch.setattr(torch, "zeros", fail)
        assert [registry.named(name).is_alive() for name in ("cuda:0", "cuda:1")] == [False, True]
