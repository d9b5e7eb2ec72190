"""Builds llama-cpp-python for this processor, and checks that the build runs here.

``python -m benchmarks.peers.build PYTHON`` builds it into the environment of that interpreter. A virtual machine may
list AMX without allowing it, and a llama.cpp that was compiled for it dies with SIGILL as soon as it computes; such a
build is made again without AMX.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Set
from pathlib import Path

import gguf
import numpy as np

from benchmarks.llama import ROOT, LlamaCpp, processor_flags

NATIVE = "-DGGML_NATIVE=ON"  # whatever the compiler finds on this processor
# Without it every instruction set has a switch of its own, all of those for AMX off by default: the processor's flag
# as Linux names it -> llama.cpp's switch. Taking AMX out of the native build by compiler options would not do: what
# -march=native stands for comes behind them.
SWITCHES = {
    "sse4_2": "SSE42",
    "avx": "AVX",
    "avx2": "AVX2",
    "avx_vnni": "AVX_VNNI",
    "bmi2": "BMI2",
    "f16c": "F16C",
    "fma": "FMA",
    "avx512f": "AVX512",
    "avx512_vnni": "AVX512_VNNI",
    "avx512_vbmi": "AVX512_VBMI",
    "avx512_bf16": "AVX512_BF16",
}
_WIDTH, _VOCABULARY = 256, 512


class BuildFailed(Exception):
    """A sentence that says what went wrong."""


def build(make: Callable[[str], None], attempt: Callable[[], int], flags: Set[str]) -> str:
    """The options of the build that runs. ``make`` builds with some; ``attempt`` gives the exit code of a small job.

    ``flags``: of the processor, as Linux names them. Raises BuildFailed.
    """
    make(NATIVE)
    code = attempt()
    if code >= 0:
        _check(code)
        return NATIVE
    print(f"llama.cpp as compiled for all that this processor lists died (signal {-code}); building without AMX.")
    options = without_amx(flags)
    make(options)
    _check(attempt())
    return options


def _check(code: int) -> None:
    """An error that the program told itself is no fault of the build: whoever uses it will hear of it, too."""
    if code < 0:
        raise BuildFailed(f"llama.cpp was built without AMX, too, but a small job with it died (signal {-code}).")
    if code:
        print(f"llama.cpp was built, but a small job with it failed (exit code {code}); see what it says above.")


def without_amx(flags: Set[str]) -> str:
    switches = (f"-DGGML_{switch}={'ON' if flag in flags else 'OFF'}" for flag, switch in SWITCHES.items())
    return " ".join(("-DGGML_NATIVE=OFF", *switches))


def install(python: Path, options: str) -> None:
    """Past pip's cache, which may hold a wheel that was compiled with other options. Raises BuildFailed."""
    package = "llama-cpp-python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--force-reinstall"]
    done = subprocess.run(
        [*command, "--no-binary", package, package], env=os.environ | {"CMAKE_ARGS": options}, check=False
    )
    if done.returncode:
        raise BuildFailed("llama-cpp-python could not be built; it needs a C++ compiler and CMake.")


def try_out(python: Path) -> int:
    """The exit code of the peer's own program after it has answered one request with a model of random weights."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny.gguf"
        write_tiny_model(model)
        request = {"prompt": list(range(1, 41)), "n": 2, "seed": 1, "max_tokens": 4, "temperature": 0.8, "top_p": 0.95}
        words = [str(python.absolute()), "-m", LlamaCpp.program, str(model), "2", "64", "2"]
        done = subprocess.run(words, cwd=ROOT, input=json.dumps(request) + "\n", text=True, check=False)
        return done.returncode


def write_tiny_model(path: Path) -> None:
    """One layer in Q8_0, wide enough for every path that a product of quantized weights can take."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(2 * _WIDTH)
    writer.add_block_count(1)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(_VOCABULARY)
    writer.add_tokenizer_model("no_vocab")
    draw = np.random.default_rng(0)
    square, up, down = (_WIDTH, _WIDTH), (2 * _WIDTH, _WIDTH), (_WIDTH, 2 * _WIDTH)
    shapes = {"token_embd": (_VOCABULARY, _WIDTH), "output": (_VOCABULARY, _WIDTH)}
    shapes |= {f"blk.0.attn_{part}": square for part in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate": up, "blk.0.ffn_up": up, "blk.0.ffn_down": down}
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, shape in shapes.items():
        weights = draw.normal(0, 0.05, shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", gguf.quantize(weights, kind), raw_dtype=kind)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    python = Path(sys.argv[1])
    try:
        build(lambda options: install(python, options), lambda: try_out(python), processor_flags())
    except BuildFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
