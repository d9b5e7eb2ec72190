"""What the doctor says, and that each weakness comes with what to do about it."""

import importlib.metadata
import os
import shutil
import sys

import pytest

from engine import device
from engine.backends import cuda
from engine.backends.cpu import Cpu
from engine.backends.device import Gpu
from engine.child_process import ROOT
from engine.doctor import display, machine, packages, protection, storage
from engine.doctor.examination import examine
from engine.models import hub, notes
from engine.runner.client import RunnerUnavailable
from engine.runner.protocol import Isolation
from kernels import llvm

GIB = 1 << 30
MACHINE = device.Machine("Linux 6.1", "x86_64", 8, 16 * GIB, 12 * GIB, ("avx2",), ())


def by_name(findings):
    return {finding.name: finding for finding in findings}


def inspect(monkeypatch, cannot_compile="", **changes):
    found = device.Machine(**(vars(MACHINE) | changes))
    monkeypatch.setattr(machine, "inspect_machine", lambda: found)
    monkeypatch.setattr(llvm, "why_not", lambda: cannot_compile)
    return by_name(machine.machine())


class TestMachine:
    def test_a_good_one(self, monkeypatch):
        found = inspect(monkeypatch)
        assert {found[name].state for name in ("system", "processor", "memory")} == {"good"}
        assert found["memory"].text == "12.9 of 17.2 GB free"
        assert found["GPU"].state == "note"
        assert "Qwen2.5-Coder" in found["default model"].text

    @pytest.mark.parametrize(
        ("changes", "name", "advice"),
        [
            ({"system": "Darwin 24"}, "system", "WSL2"),
            ({"processor": "arm64"}, "processor", "float32"),
            ({"instructions": ()}, "processor", "AVX2"),
            ({"cannot_compile": "no threads"}, "processor", "as long as they could: no threads."),
            ({"memory_free": GIB}, "memory", "smaller model"),
        ],
    )
    def test_weaknesses(self, monkeypatch, changes, name, advice):
        finding = inspect(monkeypatch, **changes)[name]
        assert finding.state == "weak"
        assert advice in finding.advice

    @pytest.mark.parametrize(("has_cuda", "state"), [(True, "good"), (False, "bad")])
    def test_a_gpu_needs_the_right_torch(self, monkeypatch, has_cuda, state):
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: has_cuda)
        finding = inspect(monkeypatch, gpus=(Gpu("A", 8 * GIB, 7 * GIB, "570", "cuda"),))["GPU 0"]
        assert finding.state == state
        assert bool(finding.advice) is not has_cuda

    def test_a_gpu_that_torch_cannot_use_is_said_to_be_left_alone(self, monkeypatch):
        monkeypatch.setattr(cuda, "torch_build_has_cuda", lambda: True)
        monkeypatch.setattr(cuda, "why_old_driver", lambda: "The NVIDIA driver is too old; update it.")
        finding = inspect(monkeypatch, gpus=(Gpu("A", 8 * GIB, 7 * GIB, "470", "cuda"),))["GPU 0"]
        assert finding.state == "bad"
        assert finding.advice == "The NVIDIA driver is too old; update it. Models run on the processor."

    def test_what_came_out_when_a_model_was_loaded_is_told(self, monkeypatch, tmp_path):
        monkeypatch.setenv("BASSLINE_HOME", str(tmp_path))
        assert "models" not in inspect(monkeypatch)
        notes.keep("llama", "The model cannot be captured as a graph (it asked).")
        notes.keep("other", "")
        finding = inspect(monkeypatch)["models"]
        assert finding.text == "llama: The model cannot be captured as a graph (it asked)."
        notes.keep("llama", "")
        assert "models" not in inspect(monkeypatch)

    def test_a_default_model_that_does_not_fit(self, monkeypatch):
        monkeypatch.setattr(Cpu, "memory_free", lambda _: GIB)
        finding = inspect(monkeypatch)["default model"]
        assert finding.state == "bad"
        assert "servers add" in finding.advice


class TestPackages:
    def test_all_are_looked_at(self):
        found = by_name(packages.packages())
        assert found["torch"].state == "good"
        assert found["torch"].text == importlib.metadata.version("torch")
        assert {"transformers", "pytest", "PySide6-Essentials", "torchao"} <= found.keys()

    def test_an_installed_program_has_no_project_file_and_asks_its_own_metadata(self, monkeypatch, tmp_path):
        lines = ["torch>=2.11", "qasync>=0.28", "triton>=3.6; sys_platform == 'plan9'", "ruff; extra == 'dev'"]
        quantized = "torchao>=0.18; extra == 'quantized'"
        monkeypatch.setattr(packages, "_PROJECT", tmp_path / "pyproject.toml")
        monkeypatch.setattr(importlib.metadata, "requires", lambda name: [*lines, quantized])
        assert by_name(packages.packages()).keys() == {"torch", "qasync", "torchao"}

    def test_missing_and_too_old(self, monkeypatch):
        real = importlib.metadata.version

        def version(name):
            if name in ("gguf", "torchao", "qasync"):
                raise importlib.metadata.PackageNotFoundError(name)
            return "4.0" if name == "transformers" else real(name)

        monkeypatch.setattr(importlib.metadata, "version", version)
        found = by_name(packages.packages())
        assert (found["gguf"].state, found["qasync"].state, found["torchao"].state) == ("bad", "weak", "note")
        assert found["gguf"].advice == "Install it: pip install 'gguf>=0.19'."
        assert found["transformers"].state == "weak"
        assert found["transformers"].text.startswith("4.0, not one of ")


class TestProtection:
    @pytest.fixture
    def answer(self, monkeypatch):
        """What the runner's probe answers: Lamps, an error, or nothing."""

        def set_answer(given):
            class Client:
                def __init__(self, on_message):
                    self._on_message = on_message

                def probe(self):
                    if isinstance(given, Exception):
                        raise given
                    if given is not None:
                        self._on_message(given)

                def close(self): ...

            monkeypatch.setattr(protection, "RunnerClient", Client)
            monkeypatch.setattr(protection, "WAIT_S", 0.05)
            return by_name(protection.protection())

        return set_answer

    def test_sealed(self, answer):
        found = answer(Isolation(True, {"files": "Hidden.", "memory": "Each process at most 1 GiB."}, weak=("memory",)))
        assert [finding.state for finding in found.values()] == ["good", "good", "weak"]
        assert found["files"].text == "Hidden."
        assert "systemd" in found["memory"].advice

    def test_open(self, answer):
        found = answer(Isolation(False, {"files": "Open."}, "bubblewrap is not installed", ("files",)))
        assert [finding.state for finding in found.values()] == ["weak"] * 2
        assert "bubblewrap is not installed" in found["sandbox"].text
        assert "apt-get install bubblewrap" in found["sandbox"].advice

    def test_no_runner(self, answer):
        assert answer(RunnerUnavailable("Tests run on Linux only."))["sandbox"].text == "Tests run on Linux only."
        assert "did not answer" in answer(None)["sandbox"].text

    def test_the_real_one_is_asked(self):
        found = by_name(protection.protection())
        assert found["sandbox"].state in ("good", "weak")
        assert {"files", "network", "memory", "processes", "verdict"} <= found.keys()


class TestStorage:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(hub, "reachable", lambda: False)

    def test_nothing_yet(self):
        found = by_name(storage.storage())
        assert found["here"].text == "no model yet"
        assert "models fetch" in found["here"].advice
        assert (found["folder"].state, found["hub"].state) == ("good", "weak")

    def test_little_room(self, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**9}))
        finding = by_name(storage.storage())["room"]
        assert (finding.state, finding.text) == ("weak", "1.0 GB free on its disk")

    def test_a_folder_that_cannot_be_written(self, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)
        finding = by_name(storage.storage())["folder"]
        assert finding.state == "bad"
        assert "BASSLINE_HOME" in finding.advice


class TestDisplay:
    def test_none(self, monkeypatch):
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
            monkeypatch.delenv(name, raising=False)
        assert by_name(display.display())["screen"].state == "note"

    def test_one(self, monkeypatch):
        monkeypatch.setenv("DISPLAY", ":7")
        assert "DISPLAY=:7" in by_name(display.display())["screen"].text

    def test_libraries_that_are_missing(self, monkeypatch):
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(display, "_loads", lambda name: "xcb" not in name)
        finding = by_name(display.display())["Qt"]
        assert "libxcb-cursor.so.0" in finding.text
        assert finding.advice.startswith("On Debian and Ubuntu: sudo apt-get install libegl1 ")

    def test_the_packages_it_names_are_those_that_a_checkout_installs(self):
        wanted = (ROOT / ".ci" / "system-packages").read_text()
        assert all(f" {name} " in wanted.replace("\n", " ").replace('"', " ") for name in display._PACKAGES)


def test_whatever_is_weak_says_what_to_do(monkeypatch):
    """Of everything that can be had on this machine; the runner says nothing here."""

    class Silent:
        def __init__(self, on_message): ...

        def probe(self): ...

        def close(self): ...

    monkeypatch.setattr(hub, "reachable", lambda: False)
    monkeypatch.setattr(protection, "RunnerClient", Silent)
    monkeypatch.setattr(protection, "WAIT_S", 0.01)
    findings = [finding for found in examine().values() for finding in found]
    assert len(findings) > 20
    assert [finding for finding in findings if finding.state in ("weak", "bad") and not finding.advice] == []
