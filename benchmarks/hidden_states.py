"""Answers of a model with the hidden states behind them, kept in a folder: what speculators are trained on."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.contract import Request, Sampling
from engine.models.loader import LoadedModel
from engine.sampler.acceptance import Coupled
from engine.sampler.cost_table import CostTable
from engine.sampler.decoder import Decoder
from engine.sampler.drafters import NoDrafter
from engine.sampler.engine import exact_cache_dtype
from engine.sampler.forward_pass import Features
from engine.sampler.policies.fixed import Fixed
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.row import Row
from engine.sampler.stopping import Limits

BEGINNINGS = (
    *(
        "Write a Python function that",
        "Implement a class",
        "Write a function",
        "Python:",
        "Create a Python script that",
    ),
    *("How do I", "Given a list of", "Write a generator that", "Write unit tests for", "Fix this function:"),
    *("Write a decorator that", "Parse", "Write an async function that", "Implement an algorithm", "def "),
)
SHORT, LONG = 25, 260  # characters of a prompt
SEED = 11


@dataclass(frozen=True)
class RecordedStates:
    """Answers to one prompt, one after the other: ``hidden`` float16 ``[N, size]``, where each of ``tokens`` int32
    ``[N]`` was drawn; ``starts`` int32: where each answer begins."""

    hidden: np.ndarray
    tokens: np.ndarray
    starts: np.ndarray


class Watcher(NoDrafter):
    """Guesses nothing, and keeps the hidden state behind every token: ``states`` float16 ``[size]``, by candidate."""

    needs = Features(hidden=True)

    def __init__(self) -> None:
        self.states: dict[int, list[Tensor]] = defaultdict(list)

    def observe(self, rows: Sequence[Row], hidden: Tensor) -> None:
        for row, state in zip(rows, hidden.half(), strict=True):
            self.states[row.candidate].append(state)


class Recorder:
    """Decodes without drafts, so that each step has one hidden state and one token for each row."""

    def __init__(self, model: LoadedModel):
        self._model = model
        self._ragged = RaggedModel(model.module, model.vocabulary, cache_dtype=exact_cache_dtype(model))

    def answers(self, prompt: list[int], samples: int, sampling: Sampling) -> RecordedStates:
        ragged, limits = self._ragged, Limits(self._model.eos_ids, sampling.max_tokens)
        ragged.clear()
        watcher = Watcher()
        decoder = Decoder(ragged, watcher, Fixed(0), Coupled(), CostTable({1: 1.0}))
        rows = [Row(number, SEED, prompt, limits, self._model.decode, sampling) for number in range(1, samples + 1)]
        with torch.inference_mode():
            last = ragged.prefill(prompt, features=watcher.needs)
            assert last is not None
            decoder.join(rows, last)
            while decoder.rows:
                decoder.step()
                decoder.leave()
        states = [state for row in rows for state in watcher.states[row.candidate][: len(row.tokens)]]
        starts = np.cumsum([0, *(len(row.tokens) for row in rows)])[:-1]
        tokens = np.array([token for row in rows for token in row.tokens], dtype=np.int32)
        return RecordedStates(torch.stack(states).numpy(), tokens, starts.astype(np.int32))

    def prompts(self, each: int) -> list[str]:
        """Prompts that the model makes up itself: ``each`` ways to go on from every one of ``BEGINNINGS``."""
        found = set()
        for beginning in BEGINNINGS:
            opened = self._model.tokenizer.apply_chat_template(
                [{"role": "user", "content": beginning}], tokenize=False, add_generation_prompt=False
            )
            opened = opened[: opened.rindex(beginning) + len(beginning)]  # the turn stays open
            ids = self._model.tokenizer.encode(opened, add_special_tokens=False)
            made = self.answers(ids, each, Sampling(temperature=1.1, top_p=0.97, max_tokens=50))
            for tokens in np.split(made.tokens, made.starts[1:]):
                text = beginning + self._model.decode(tokens.tolist())
                found.add(text.strip().partition("\n")[0].strip())
        kept = sorted(text for text in found if SHORT < len(text) < LONG)
        random.Random(SEED).shuffle(kept)
        return kept


def recorded(
    model: LoadedModel, folder: Path, given: list[str], made_up: int, samples: int
) -> Iterator[RecordedStates]:
    """Answers to the prompts that were given and to those the model makes up; those in ``folder`` are only read."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(model)
    asked = folder / "prompts.json"
    if not asked.exists():
        asked.write_text(json.dumps([*given, *recorder.prompts(made_up)], indent=0), encoding="utf-8")
    for number, prompt in enumerate(json.loads(asked.read_text(encoding="utf-8"))):
        path = folder / f"{number:04}.npz"
        if not path.exists():
            ids = model.encode(Request(prompt, SEED, samples))
            answers = recorder.answers(ids, samples, Sampling(top_p=0.95, max_tokens=260))
            part = path.with_suffix(".part.npz")
            np.savez(part, **vars(answers))
            part.replace(path)
        with np.load(path) as file:
            yield RecordedStates(**{name: file[name] for name in file.files})
