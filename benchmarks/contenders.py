"""Ways to get n answers to one prompt, behind one call, so that they can be interleaved."""

import json
import queue
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Protocol

import torch

from benchmarks.models import loaded
from engine.contract import (
    BasslineError,
    Close,
    Closed,
    Event,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
    Speculation,
)
from engine.sampler.engine import SamplerEngine


@dataclass(frozen=True)
class Timing:
    """One run. ms per token as in the BASS paper: of the first and last candidate to finish, and the mean."""

    ms_first: float
    ms_last: float
    ms_mean: float
    tokens_per_second: float
    first_token_s: float | None
    tokens: int
    acceptance: float | None = None
    draft_length: float | None = None
    plain_share: float | None = None


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, prompt: str, n: int, sampling: Sampling, seed: int) -> Timing: ...


class OurEngine:
    """One sampler on its thread, shared by all our contenders: they differ only in how they speculate."""

    def __init__(self, choice: ModelChoice):
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._engine = SamplerEngine()
        threading.Thread(target=self._engine.run, args=(self._events.put,), daemon=True).start()
        self._engine.submit(Load(choice))
        ready = self._wait(Ready | LoadFailed)
        if isinstance(ready, LoadFailed):
            raise BasslineError(ready.reason)

    def run(self, request: Request) -> RunFinished:
        self._engine.submit(Generate("bench", request))
        finished = self._wait(RunFinished)
        assert isinstance(finished, RunFinished)
        if finished.outcome != "finished":
            raise BasslineError(finished.reason or f"The run ended as {finished.outcome}.")
        return finished

    def forget(self) -> None:
        """Let go of what a follow-up would go on from: the prompt's keys and values, and what was said.

        Otherwise the next contender would be given the prompt, and drafts of this one's answers.
        """
        self.run(Request("-", 0, 1, sampling=Sampling(max_tokens=1), speculation=Speculation("suffix")))

    def close(self) -> None:
        self._engine.submit(Close())
        self._wait(Closed)

    def _wait(self, kind: object) -> Event:
        while not isinstance(event := self._events.get(), kind):  # type: ignore[arg-type]
            pass
        return event


@dataclass(frozen=True)
class Ours:
    name: str
    engine: OurEngine
    speculation: Speculation

    def run(self, prompt: str, n: int, sampling: Sampling, seed: int) -> Timing:
        self.engine.forget()
        request = Request(prompt, seed, n, sampling=sampling, speculation=self.speculation)
        metrics = self.engine.run(request).metrics
        assert metrics is not None
        assert metrics.tokens_per_second is not None
        decode_s = metrics.total_s - (metrics.time_to_first_token_s or 0.0)
        return Timing(
            metrics.ms_per_token_first or 0.0,
            metrics.ms_per_token_last or 0.0,
            metrics.ms_per_token_mean or 0.0,
            metrics.tokens_per_second,
            metrics.time_to_first_token_s,
            round(metrics.tokens_per_second * decode_s),
            metrics.acceptance_rate,
            metrics.mean_draft_length,
            metrics.plain_step_share,
        )


class Stock:
    """transformers' own ``generate``: one call, all answers when the longest is done."""

    def __init__(self, name: str, model: str, precision: str):
        self.name = name
        self._model = loaded(model, precision)
        self._model.module.set_attn_implementation("sdpa")  # type: ignore[operator]

    @torch.inference_mode()
    def run(self, prompt: str, n: int, sampling: Sampling, seed: int) -> Timing:
        torch.manual_seed(seed)
        ids = torch.tensor([self._model.encode(Request(prompt, 0))], device=self._model.device)
        start = time.perf_counter()
        out = self._model.module.generate(  # type: ignore[operator]
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=sampling.temperature > 0,
            temperature=sampling.temperature or None,
            top_p=sampling.top_p,
            top_k=sampling.top_k or None,
            max_new_tokens=sampling.max_tokens,
            num_return_sequences=n,
            eos_token_id=sorted(self._model.eos_ids),
            pad_token_id=min(self._model.eos_ids),
        )
        seconds = time.perf_counter() - start
        counts = [self._length(row) for row in out[:, ids.shape[1] :].tolist()]
        per_token = sorted(1e3 * seconds / count for count in counts)
        # Nothing is delivered before the end: a short answer waits for the longest.
        return Timing(per_token[0], per_token[-1], mean(per_token), sum(counts) / seconds, None, sum(counts))

    def _length(self, row: list[int]) -> int:
        return next((at + 1 for at, token in enumerate(row) if token in self._model.eos_ids), len(row))


class LlamaCpp:
    """llama.cpp on the same GGUF file: n sequences in one batch over one prompt, in a process of its own."""

    def __init__(self, name: str, model: str, python: Path, gguf: Path, most: int, max_tokens: int):
        """``python``: the interpreter of the peers' environment; ``most``: sequences; prompts of up to 512 tokens."""
        self.name = name
        self._model = loaded(model, device="cpu")
        script = Path(__file__).parent / "peers" / "llama.py"
        command = [python, script, gguf, most, 512 + max_tokens, torch.get_num_threads()]
        self._process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.about = self._answer()

    def run(self, prompt: str, n: int, sampling: Sampling, seed: int) -> Timing:
        assert self._process.stdin is not None
        ids = self._model.encode(Request(prompt, seed))
        asked = {"prompt": ids, "n": n, "seed": seed, "max_tokens": sampling.max_tokens}
        self._process.stdin.write(json.dumps(asked | {"temperature": sampling.temperature, "top_p": sampling.top_p}))
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._answer()
        counts = [len(tokens) for tokens in answer["tokens"]]
        decoding = [end - answer["first_s"] for end in answer["ended_s"]]
        per_token = sorted(1e3 * seconds / count for seconds, count in zip(decoding, counts, strict=True))
        return Timing(
            per_token[0], per_token[-1], mean(per_token), sum(counts) / max(decoding), answer["first_s"], sum(counts)
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BasslineError("The llama.cpp process has ended; run benchmarks/peers/llama.py by hand to see why.")
        answer: dict[str, Any] = json.loads(line)
        return answer
