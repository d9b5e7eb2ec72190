"""transformers' own ``generate``, as it comes, and with its assisted generation."""

import time
from typing import Any

import torch
from transformers.generation import BaseStreamer

from benchmarks.target_models import loaded
from benchmarks.timing import Timing
from engine.contract import Request

LOOKED_UP = 10  # tokens a look-up in the prompt may guess; the number in the documentation of transformers


class Stock:
    """One call for all candidates. A streamer sees each token as it is drawn, so every candidate's own end is known.

    ``assisted``: guesses from ``draft``, a model's name, or else looked up in the text so far (prompt-lookup decoding).
    transformers does that for one candidate at a time.
    """

    def __init__(self, model: str, precision: str, *, assisted: bool = False, draft: str = ""):
        self._model = loaded(model, precision)
        self._model.module.set_attn_implementation("sdpa")
        self._assistance: dict[str, Any] = {}
        if assisted and draft:
            assistant = loaded(draft, precision).module
            assistant.set_attn_implementation("sdpa")
            self._assistance = {"assistant_model": assistant}
        elif assisted:
            self._assistance = {"prompt_lookup_num_tokens": LOOKED_UP}

    def rest(self) -> None:
        """Nothing outlives a call."""

    def close(self) -> None:
        """There is nothing to close."""

    @torch.inference_mode()
    def answer(self, request: Request) -> Timing:
        torch.manual_seed(request.seed)
        sampling, ends = request.sampling, sorted(self._model.eos_ids)
        clock = Clock(request.candidates, self._model.eos_ids)
        ids = torch.tensor([self._model.encode(request)], device=self._model.device)
        self._model.module.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=sampling.temperature > 0,
            temperature=sampling.temperature or None,
            top_p=sampling.top_p,
            top_k=sampling.top_k or None,
            max_new_tokens=sampling.max_tokens,
            num_return_sequences=request.candidates,
            eos_token_id=ends,
            pad_token_id=ends[0],
            streamer=clock,
            **self._assistance,
        )
        return clock.timing()


class Clock(BaseStreamer):
    """Notes when the tokens of each row come, up to its end token. The first it is given is the prompt."""

    def __init__(self, rows: int, eos_ids: frozenset[int]):
        self._start = time.perf_counter()
        self._eos_ids = eos_ids
        self._first_s: float | None = None
        self._ends = [(0.0, 0)] * rows  # seconds, tokens
        self._over = [False] * rows
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        """``[B]`` or, from assisted generation, ``[1, k]``."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        now = time.perf_counter() - self._start
        self._first_s = self._first_s or now
        for row, tokens in enumerate(value.reshape(len(self._ends), -1).tolist()):
            for token in tokens:
                if not self._over[row]:  # behind a row's end comes padding
                    self._ends[row] = (now, self._ends[row][1] + 1)
                    self._over[row] = token in self._eos_ids

    def end(self) -> None:
        """The last token has come."""

    def timing(self) -> Timing:
        assert self._first_s is not None
        return Timing.of(self._first_s, self._ends)
