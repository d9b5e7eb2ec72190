"""llama.cpp as a peer: ``peers/llama.py`` in an environment of its own, spoken to in JSON lines."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import PeakMemory
from benchmarks.timing import Timing
from engine.contract import BasslineError, Request

ROOT = Path(__file__).resolve().parents[1]
Encode = Callable[[Request], list[int]]
PROMPT_ROOM = 512  # tokens


class LlamaCpp:
    """The same GGUF file: n sequences in one batch over one prompt.

    ``encode``: see ``models.encoder``, so that both sides read the same ids; ``python``: the interpreter that
    ``make bench-peers`` made; ``most``: sequences it will be asked for at a time, of ``max_tokens`` behind a prompt of
    up to 512. It sets memory aside for that many from the start.
    """

    program = "benchmarks.peers.llama"  # what the interpreter is started with

    def __init__(self, encode: Encode, python: Path, gguf: Path, most: int, max_tokens: int):
        self._encode = encode
        if not python.is_file():
            raise BasslineError(f"There is no {python}; run `make bench-peers` once, or name one with --peer-python.")
        arguments = [gguf.absolute(), most, PROMPT_ROOM + max_tokens, torch.get_num_threads()]
        self._process = subprocess.Popen(
            [str(python.absolute()), "-m", self.program, *map(str, arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.about = self._read()
        if left_out := unused(self.about["features"], processor_flags()):
            self.close()
            raise BasslineError(
                f"llama.cpp was compiled without this processor's {left_out}, which would be unfair to it; remove "
                ".venv-peers and run `make bench-peers`."
            )

    def answer(self, request: Request) -> Timing:
        sampling = request.sampling
        ids = self._encode(request)
        with PeakMemory(self._process.pid) as peak:
            reply = self.ask(
                prompt=ids,
                n=request.candidates,
                seed=request.seed,
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
            )
        counts = map(len, reply["tokens"])
        return replace(Timing.of(reply["first_s"], list(zip(reply["ended_s"], counts, strict=True))), peak_mib=peak.mib)

    def ask(self, **request: Any) -> dict[str, Any]:
        """What the peer's program answers to it: see there."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def rest(self) -> None:
        """It clears its cells at each request."""

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()  # closes the pipes, too

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise BasslineError(f"The llama.cpp process has ended; run {self.program} by hand to see why.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def unused(features: str, flags: frozenset[str]) -> str:
    """The first vector instructions that the processor has (``flags``) and llama.cpp does not list; empty for none."""
    used = {name.split(":")[-1].strip() for name, _, on in (f.partition("=") for f in features.split("|")) if "1" in on}
    wanted = {"avx2": "AVX2", "avx512f": "AVX512", "avx512_vnni": "AVX512_VNNI"}
    return next((name for flag, name in wanted.items() if flag in flags and name not in used), "")


def processor_flags() -> frozenset[str]:
    """As Linux names them; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
