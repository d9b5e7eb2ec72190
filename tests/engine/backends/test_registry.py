"""A backend is one file: nothing else names a kind of device, and one registration makes it known everywhere."""

import re
import subprocess
from pathlib import Path

import pytest
import torch

from app.cli.arguments import parser
from engine.backends import registry
from engine.backends.cpu import Cpu
from engine.backends.device import Device, Gpu
from engine.device import inspect_machine
from engine.doctor import machine
from engine.models.catalog import DEFAULT
from engine.models.errors import PrecisionNotAvailable
from engine.models.memory_plan import MemoryPlan, ModelPart
from engine.models.names import choose_device, choose_precision, find_entry, resolve
from engine.sampler.device_path import open_model
from engine.sampler.streams import HostCopy, Stopwatch, to_device
from tests.engine.sampler.tiny import build

CHECKOUT = Path(__file__).parents[3]
GIB = 1 << 30
# Where CUDA is named: its backend, the line that registers it, and kernels that know what Triton compiles to.
MAY_NAME_CUDA = re.compile(r"engine/backends/(cuda\w*|registry)\.py|kernels/\w+/triton\.py")


def test_only_its_backend_names_cuda():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", "main.py", "app", "benchmarks", "engine", "kernels"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    files = [name for name in listed if name.endswith(".py") and (CHECKOUT / name).exists()]
    assert len(files) > 300
    naming = [name for name in files if "cuda" in (CHECKOUT / name).read_text(encoding="utf-8").lower()]
    assert [name for name in naming if not MAY_NAME_CUDA.fullmatch(name)] == []
    assert "engine/backends/cuda.py" in naming


class Abacus(Device):
    """A kind of GPU that nobody has heard of."""

    kind = "abacus"
    precisions = ("float16", "int4")
    overhead = 1_000_000
    memory = "bead"

    def found(self):
        return (Gpu("Abacus 9", 64 * GIB, 48 * GIB, "1.0", self.kind),)

    def memory_free(self):
        return 48 * GIB

    def automatic_precision(self):
        return "float16"

    def event(self, *, timing=False):
        raise AssertionError("it has none")

    def attention(self):
        raise AssertionError("it has none")


@pytest.fixture
def abacus(monkeypatch):
    monkeypatch.setattr(registry, "_BACKENDS", dict(registry._BACKENDS))
    registry.add("abacus", Abacus)
    yield
    registry._open.cache_clear()


@pytest.mark.usefixtures("abacus")
class TestAnotherBackend:
    def test_names_are_resolved_for_it(self):
        assert choose_device("auto") == "abacus"  # the machine has one, and no other GPU
        assert choose_device("abacus:0") == "abacus:0"
        with pytest.raises(PrecisionNotAvailable, match="There is no GPU number 1 here; the last is abacus:0"):
            choose_device("abacus:1")
        with pytest.raises(PrecisionNotAvailable, match="choose auto, cpu, cuda or abacus"):
            choose_device("tpu")
        assert choose_precision("auto", "abacus") == "float16"
        assert choose_precision("int4", "abacus:0") == "int4"
        with pytest.raises(PrecisionNotAvailable, match="int8 is not available on abacus; choose float16, int4"):
            choose_precision("int8", "abacus")
        assert (resolve(DEFAULT).device, resolve(DEFAULT).precision) == ("abacus", "float16")

    def test_what_fits_is_planned_for_it(self):
        entry = find_entry(DEFAULT)
        assert entry is not None
        part, other = (ModelPart(entry.shape, "float16", kind) for kind in ("abacus", "cuda"))
        plan, known = MemoryPlan(part, free=registry.named("abacus").memory_free()), MemoryPlan(other)
        assert plan.largest_width(most=8) == 8
        assert known.needed(8) - plan.needed(8) == registry.named("cuda").overhead - Abacus.overhead

    def test_the_doctor_shows_it(self):
        assert [gpu.kind for gpu in inspect_machine().gpus] == ["abacus"]
        finding = {finding.name: finding for finding in machine.machine()}["GPU 0"]
        assert finding.text == "Abacus 9, 51.5 of 68.7 GB free, driver 1.0"
        assert finding.advice == "There are no kernels for abacus, so attention runs in plain PyTorch."

    def test_a_model_on_it_runs_in_plain_pytorch_and_says_so(self):
        checked = []
        model = open_model(build(), 90, precision="float32", check=checked.append, device=Abacus())
        assert type(model).__name__ == "RaggedModel"
        assert model.note == "There are no kernels for abacus, so attention runs in plain PyTorch."
        assert checked == [model]

    def test_no_kind_is_registered_twice(self):
        with pytest.raises(ValueError, match="registered already"):
            registry.add("abacus", Abacus)


def test_the_command_line_takes_any_device_and_shows_those_that_are_known(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["generate", "--help"])
    assert "{auto,cpu,cuda}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cpu:0", "cuda:", "cuda:-1", "CPU", "cuda:0:1", "meta", ""])
def test_what_is_no_device(name):
    assert registry.find(name) is None
    with pytest.raises(KeyError):
        registry.named(name)


def test_a_tensor_tells_its_device():
    assert isinstance(registry.device_of(torch.zeros(1).device), Cpu)
    second = registry.device_of(torch.device("cuda", 1))
    assert (str(second), second.number, second.is_asynchronous) == ("cuda:1", 1, True)
    assert registry.device_of(torch.device("cuda", 1)) is second


class TestProcessor:
    """What goes on beside the host elsewhere is done here before it is asked about."""

    def test_values_are_there_at_once(self):
        values = torch.arange(5)
        assert HostCopy(values).wait().tolist() == to_device(values, torch.device("cpu")).tolist() == [0, 1, 2, 3, 4]

    def test_seconds_are_the_hosts(self, monkeypatch):
        clock = iter([1.0, 3.5])
        monkeypatch.setattr("engine.backends.cpu.time.perf_counter", lambda: next(clock))
        watch = Stopwatch(torch.device("cpu"))
        watch.stop()
        assert watch.seconds == 2.5
