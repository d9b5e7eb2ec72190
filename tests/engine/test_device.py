"""The machine as found without torch."""

import os
import subprocess
import sys
from pathlib import Path

from engine import device
from kernels import quota

CHECKOUT = Path(device.__file__).parents[1]


def test_what_this_machine_has():
    machine = device.inspect_machine()
    assert 1 <= machine.cores <= (os.cpu_count() or 1)
    assert 0 < machine.memory_free <= machine.memory_total
    assert machine.processor


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


def test_openmp_has_no_more_threads_than_a_share_of_the_processor(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(quota, "bound", lambda: 16)
    monkeypatch.setattr(quota, "share", lambda: 2.5)
    device.prepare_environment()
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert device.cores() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(quota, "share", lambda: None)
    device.prepare_environment()
    assert "OMP_NUM_THREADS" not in os.environ
