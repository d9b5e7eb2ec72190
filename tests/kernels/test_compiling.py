"""Every device kernel compiles to machine code, on a machine without a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton has no wheel for this platform")


def test_every_kernel_compiles_for_the_gpus_it_is_for(tmp_path):
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-m", "tests.kernels.compiling"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 17
