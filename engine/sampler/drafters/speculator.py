"""Speculator: a small network that predicts the next tokens from the target's hidden states, without passes of its own.

The hidden state that the target's output layer turned into a token knows more than that token. From it and the token
that was drawn, the network predicts the next hidden state, which the target's own output layer (a few thousand rows of
it) turns into a guess; and so on, one network for every depth. It needs no cache and a fraction of a millisecond per
token. After Medusa (arXiv 2401.10774), Hydra (arXiv 2402.05109) and recurrent drafting (arXiv 2403.09919).

A guess is only a guess: the target decides what stays. ``benchmarks/speculators.py`` trains the networks in
``resources/speculators``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from engine.models.causal_lm import CausalLM
from engine.models.loaded_model import LoadedModel
from kernels.int8_linear import Int8Linear, available

DEPTHS, CLASSES = 4, 10  # of guesses that are told apart: how far ahead, and how sure the network is
ALIKE = 0.9  # least cosine between embeddings of the model it was trained for and of one it serves
FOLDER = Path(__file__).resolve().parents[3] / "resources" / "speculators"


@dataclass(frozen=True)
class SpeculatorKind:
    """A guess at ``depth`` (from 0) of a class of sureness. ``prior``: share of its kind that was right."""

    depth: int
    share: int
    prior: float


class Network(nn.Module):
    """``state``, a hidden state, and ``token``, the embedding of what was said: float32 ``[B, size]``, about 1 in size.

    Returns the state after that token, likewise.
    """

    def __init__(self, size: int, width: int):
        super().__init__()
        self.size, self.width = size, width
        self.read = nn.Linear(2 * size, size + 2 * width, bias=False)
        self.write = nn.Linear(width, size, bias=False)
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, state: Tensor, token: Tensor) -> Tensor:
        read: Tensor = self.read(torch.cat([state, token], -1))
        kept, gate, value = read.split([self.size, self.width, self.width], -1)
        after: Tensor = kept + self.write(silu(gate) * value)
        return after * torch.rsqrt(after.square().mean(-1, keepdim=True) + 1e-6) * self.gain


@dataclass(frozen=True)
class SpeculatorFile:
    """What a file in ``resources/speculators`` holds.

    ``read`` and ``write``: the network's weights as int8 in -63 .. 63 ``[out, in]``, with float32 scales ``[out]``;
    ``vocabulary`` int32 ``[K]``: the ids it may guess; ``state_size``, ``token_size``: what hidden states and
    embeddings are divided by; ``right`` float32 ``[DEPTHS, CLASSES]``: how often a guess of each kind was right in
    answers to prompts that were not trained on. ``probe_ids``, ``probe_texts`` and ``probe_rows`` (embeddings) tell
    whom it is for.
    """

    read: np.ndarray
    read_scale: np.ndarray
    write: np.ndarray
    write_scale: np.ndarray
    gain: np.ndarray
    vocabulary: np.ndarray
    state_size: np.ndarray
    token_size: np.ndarray
    right: np.ndarray
    probe_ids: np.ndarray
    probe_texts: np.ndarray
    probe_rows: np.ndarray

    @classmethod
    def load(cls, path: Path) -> "SpeculatorFile":
        with np.load(path) as file:
            return cls(**{name: file[name] for name in file.files})

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    def fits(self, model: LoadedModel) -> bool:
        """Whether it was trained for this model, or one fine-tuned from it: the same ids, and embeddings much alike."""
        embeddings = model.module.get_input_embeddings()
        if embeddings is None or model.module.get_output_embeddings() is None:
            return False
        ids = self.probe_ids.tolist()
        if embeddings.embedding_dim != len(self.gain) or max(ids) >= len(model.tokenizer):
            return False
        if model.tokenizer.convert_ids_to_tokens(ids) != self.probe_texts.tolist():
            return False
        rows = embeddings(torch.tensor(ids, device=model.device)).float().cpu()
        return bool(torch.cosine_similarity(rows, torch.from_numpy(self.probe_rows).float()).mean() >= ALIKE)

    def network(self) -> Network:
        """With its weights, as ``nn.Linear``."""
        network = Network(len(self.gain), self.write.shape[1])
        for layer, levels, scale in (
            (network.read, self.read, self.read_scale),
            (network.write, self.write, self.write_scale),
        ):
            layer.weight.data = torch.from_numpy(levels.astype(np.float32) * scale[:, None])
        network.gain.data = torch.from_numpy(self.gain)
        return network


class Speculator:
    """A network beside the target whose hidden states it reads. All on the CPU, in int8 where there are kernels."""

    def __init__(self, file: SpeculatorFile, target: CausalLM):
        self._embeddings: nn.Module = target.get_input_embeddings()
        self._vocabulary = torch.from_numpy(file.vocabulary).long()
        self._state_size, self._token_size = float(file.state_size), float(file.token_size)
        self._network = file.network().requires_grad_(False)
        head = nn.Linear(len(file.gain), len(self._vocabulary), bias=False).requires_grad_(False)
        head.weight.data = output_rows(target, self._vocabulary) * self._state_size
        self._head: nn.Module = head
        if available():
            self._network.read = Int8Linear.from_linear(self._network.read)  # type: ignore[assignment]
            self._network.write = Int8Linear.from_linear(self._network.write)  # type: ignore[assignment]
            self._head = Int8Linear.from_linear(head)
        self._insights = [
            [SpeculatorKind(depth, share, float(prior)) for share, prior in enumerate(row)]
            for depth, row in enumerate(file.right)
        ]

    def begin(self, hidden: Tensor) -> Tensor:
        """The states to go on from: what the target's output layer read where rows' last tokens were drawn."""
        return hidden.float() / self._state_size

    @torch.inference_mode()
    def next(self, state: Tensor, tokens: list[int], depth: int) -> tuple[Tensor, list[tuple[int, SpeculatorKind]]]:
        """The states after ``tokens``, one for each row, and what each row says next; ``depth`` guesses were made."""
        embedded = self._embeddings(torch.tensor(tokens)).float() / self._token_size
        state = self._network(state, embedded)
        logits = self._head(state)
        largest, places = logits.max(-1)
        shares = (largest - logits.logsumexp(-1)).exp().mul_(CLASSES).long().clamp_(max=CLASSES - 1)
        insights = self._insights[min(depth, DEPTHS - 1)]
        guesses = zip(self._vocabulary[places].tolist(), shares.tolist(), strict=True)
        return state, [(token, insights[share]) for token, share in guesses]


def output_rows(target: CausalLM, ids: Tensor) -> Tensor:
    """Rows of the output layer's weight, float32 ``[K, size]``; of the embeddings, where they are one and the same."""
    layer = target.get_output_embeddings()
    if isinstance(layer, Int8Linear):
        if not target.config.tie_word_embeddings:
            levels, scale = layer.packed.unpack()
            return levels[ids].float() * scale[ids, None]
        layer = target.get_input_embeddings()
    assert layer is not None, "models without one have no speculator"
    weight: Any = layer.weight
    rows: Tensor = weight[ids].detach().float()
    return rows


def speculator_for(model: LoadedModel) -> Speculator | None:
    """The speculator that was trained for this model, if there is one and it can run beside it."""
    if model.device.type != "cpu":
        return None
    files = map(SpeculatorFile.load, sorted(FOLDER.glob("*.npz")))
    return next((Speculator(file, model.module) for file in files if file.fits(model)), None)
