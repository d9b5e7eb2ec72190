"""The only way to a model's forward pass: any number of tokens per row, over ragged rows and a shared prompt.

The target's verify pass, its prefill, and a draft model's catch-up are the same call. How it is done
(a packed or padded line here, captured graphs in ``device_model``) does not concern callers.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from engine.backends.registry import device_of
from engine.models.causal_lm import CausalLM
from engine.sampler.cache import ATTENTION_NAME, RaggedCache, Step, forward_over
from engine.sampler.forward_pass import NO_FEATURES, Features, Pass
from engine.sampler.prefix_reuse import PrefixReuse
from engine.sampler.verdict import HostVerifier, Verifier
from kernels.elementwise import compile_elementwise
from kernels.float_linear import make_rows_independent

PREFILL_CHUNK = 256  # tokens of the prompt between two looks at the mailbox


def is_spread(module: nn.Module) -> bool:
    """Whether accelerate placed the module's layers on more than one device."""
    return len(set(getattr(module, "hf_device_map", {}).values())) > 1


class RaggedModel:
    """A stock transformers causal LM with a ragged cache.

    ``vocabulary``: ids at or above it are padding of the output layer and are cut off. ``packed`` lines save the
    arithmetic of padding when rows send different numbers of tokens; padded ones keep the shape ``[B, Q]``.
    ``cache_dtype``: see ``RaggedCache``. ``note``: a sentence about what this machine could not do for it, or empty.
    """

    note = ""
    is_asynchronous = False  # a step that was asked for goes on by itself, and the host is free meanwhile
    has_kernels = False  # verdicts over its logits are reached by the device's kernels

    def __init__(
        self, module: CausalLM, vocabulary: int, *, packed: bool = True, cache_dtype: torch.dtype | None = None
    ):
        self.module, self.vocabulary, self.packed, self._cache_dtype = module, vocabulary, packed, cache_dtype
        self.device = next(module.parameters()).device
        self.tokens_read = 0  # of prompts and openings, so far
        if self.device.type == "cpu":
            # In float32, too, a row says what it says alone: torch's products and activations round by the batch.
            make_rows_independent(compile_elementwise(module))
        # Indices on the host serve the layers of a model that is spread over several GPUs, wherever they are.
        self._index_device = torch.device("cpu") if is_spread(module) else self.device
        accepted = inspect.signature(module.forward).parameters
        # transformers 5.17 swallows `cache=` without a word and 5.24 deprecates the older name.
        self._cache_keyword = "cache" if "cache" in accepted else "past_key_values"
        self.can_choose_logits = "logits_to_keep" in accepted
        module.set_attn_implementation(ATTENTION_NAME)
        self.clear()

    @property
    def verifier(self) -> Verifier:
        """What reaches verdicts over its logits."""
        return HostVerifier()

    def clear(self) -> None:
        """Forget prompt and rows."""
        layers = self.module.config.num_hidden_layers
        self.cache = RaggedCache(layers, self._cache_dtype)
        self.forget_prompt()

    def forget_prompt(self) -> None:
        """Nothing of the last run is gone on from."""
        self._recall = PrefixReuse()

    @property
    def place(self) -> str:
        """Where passes run, and how: what their times hold for."""
        return device_of(self.device).place()

    @property
    def chunk(self) -> int:
        """Tokens of a prompt that are read between two looks at the mailbox."""
        return PREFILL_CHUNK

    @contextmanager
    def stock_attention(self) -> Iterator[None]:
        """The module as transformers ships it, for comparison."""
        self.module.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.module.set_attn_implementation(ATTENTION_NAME)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Another prompt may be read meanwhile; prompt and answers are afterwards what they were before."""
        kept = self.cache, self._recall
        self.clear()
        try:
            yield
        finally:
            self.cache, self._recall = kept

    @property
    def prompt_length(self) -> int:
        return self.cache.prefix_length

    def prefill(
        self,
        prompt: Sequence[int],
        between_chunks: Callable[[int], bool] = lambda done: True,
        features: Features = NO_FEATURES,
    ) -> Pass | None:
        """Read the prompt once, as a batch of one, and share its keys and values with all rows to come.

        What it has in common with the last prompt and an answer to it is not read again (see ``PrefixReuse``).
        Returns the pass over its last token, ``[1, V]``; None if ``between_chunks(tokens read)`` said to stop.
        """
        match, recall = self._recall.match(prompt), self._recall.going_on_with(prompt)
        self._recall = PrefixReuse()
        self.cache.resume(match)
        last = None
        known = self.prompt_length
        for start in range(known, len(prompt), self.chunk):
            chunk = prompt[start : start + self.chunk]
            last = self.forward([chunk], [start], last_only=True, features=features)
            if not between_chunks(start + len(chunk)):
                self.clear()
                return None
        self.cache.freeze(len(prompt))
        self._recall = recall
        self.tokens_read += len(prompt) - known
        return last

    @torch.inference_mode()
    def forward(
        self,
        tokens: Sequence[Sequence[int]],
        starts: Sequence[int],
        *,
        last_only: bool = False,
        features: Features = NO_FEATURES,
    ) -> Pass:
        """One pass: row b's ``tokens[b]`` (at least one) at absolute positions from ``starts[b]``.

        Logits are of every token, row after row, ``[T, V]``; with ``last_only`` of each row's last, ``[B, V]``.
        """
        counts = [len(row) for row in tokens]
        step = Step(counts, starts, self.cache.prefix_length, packed=self.packed, device=self._index_device)
        last = torch.tensor(counts, device=self._index_device).cumsum(0) - 1
        choose = self.can_choose_logits and self.packed and last_only
        options = {"logits_to_keep": last} if choose else {}
        with forward_over(self.cache, step), self._read_by_output(features) as read:
            out = self.module(
                input_ids=step.line(tokens).to(self.device),
                position_ids=step.positions,
                use_cache=True,
                **{self._cache_keyword: self.cache},
                **options,
            )

        def in_line(per_token: Tensor) -> Tensor:
            if choose:
                return per_token[0]
            return step.true_tokens(per_token)[last] if last_only else step.true_tokens(per_token)

        return Pass(in_line(out.logits)[:, : self.vocabulary], in_line(read[-1]) if read else None)

    @contextmanager
    def _read_by_output(self, features: Features) -> Iterator[list[Tensor]]:
        """What the output layer reads meanwhile, if that is wanted."""
        read: list[Tensor] = []
        if not features.hidden:
            yield read
            return
        output = self.module.get_output_embeddings()
        assert output is not None, "a causal language model has an output layer"
        hook = output.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0]))
        try:
            yield read
        finally:
            hook.remove()

    def remember(self, row: int, answer: Sequence[int]) -> None:
        """A row has ended; a follow-up may go on from its answer, whose last token was never fed.

        ``answer``: all that it has behind the prompt.
        """
        self._recall.keep(answer, self.cache.take(row, len(answer) - 1))

    def recollect(self, row: int, tokens: Sequence[int]) -> int:
        """Put into a row's slab what is known of ``tokens`` from an answer to this prompt; how many need no reading."""
        match = self._recall.behind_prompt(tokens)
        if match.segment is not None:
            self._hold(row + 1, match.answer)
            self.cache.put(row, match.segment, match.answer)
        return match.answer

    def share(self, row: int, others: Sequence[int], length: int) -> None:
        """Rows that begin with the same ``length`` tokens as this one get its keys and values."""
        self._hold(max(others) + 1, length)
        self.cache.share(row, others, length)

    def _hold(self, rows: int, slots: int) -> None:
        """Room for so many rows of so many slots, now. Slabs grow by themselves."""

    def reserve(self, rows: int, slots: int, prompt: int, *, last_only: bool = False) -> None:
        """So many rows of so many tokens are coming, behind such a prompt. Slabs that grow need no telling."""

    def release(self) -> None:
        """Memory is short: let that of all rows go. The prompt stays."""
        self.cache.keep([])

    def forget_rows(self) -> None:
        """A run is over; the prompt and the answers stay for a follow-up."""
        self.cache.keep([])

    def keep(self, rows: Sequence[int]) -> None:
        """Compaction: see ``RaggedCache.keep``."""
        self.cache.keep(rows)
