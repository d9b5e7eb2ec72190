"""llama.cpp one answer after another, as a user uses it who samples until the tests pass.

Runs in the peers' environment, as a module from the root of the checkout. Reads one JSON request a line:

    {"prompt": [...], "n": 8, "temperature": 0.8, "top_p": 0.95, "max_tokens": 512, "seed": 0}   -> {} when it is read
    {}                                                      the next answer to that prompt       -> {"tokens": [...]}
    {..., "together": true}                                 all answers, in one batch            -> {"tokens": [[...]]}

The prompt is read once: its keys and values stay, and every answer goes on from a copy that costs nothing.
"""

import ctypes
from typing import Any

import llama_cpp as llama

from benchmarks.peers.llama import Sequences, serve

_PROMPT, _ANSWER = 0, 1  # sequences


class SequentialServer(Sequences):
    """One sequence at a time over one copy of the prompt."""

    _samplers: list[Any] = []  # noqa: RUF012  (one prompt's; replaced, never changed)

    def begin(self, prompt: list[int], n: int, temperature: float, top_p: float, max_tokens: int, seed: int) -> None:
        """Read the prompt, for at most ``n`` answers."""
        self._memory = llama.llama_get_memory(self.context)
        llama.llama_memory_clear(self._memory, True)
        self._decode([(token, at, _PROMPT) for at, token in enumerate(prompt)], last_only=True)
        size = ctypes.sizeof(ctypes.c_float) * llama.llama_vocab_n_tokens(self.vocab)
        self._logits = ctypes.string_at(llama.llama_get_logits_ith(self.context, -1), size)
        for left in self._samplers:
            llama.llama_sampler_free(left)
        self._samplers = [self._sampler(temperature, top_p, seed * 1000 + number) for number in range(n)]
        self._length, self._max_tokens = len(prompt), max_tokens

    def next(self) -> list[int]:
        """The tokens of one more answer, its end included."""
        llama.llama_memory_seq_cp(self._memory, _PROMPT, _ANSWER, -1, -1)
        # The logits behind the prompt go back to where the last answer has left its own.
        ctypes.memmove(llama.llama_get_logits_ith(self.context, -1), self._logits, len(self._logits))
        sampler, *self._samplers = self._samplers
        tokens = [llama.llama_sampler_sample(sampler, self.context, -1)]
        while not llama.llama_vocab_is_eog(self.vocab, tokens[-1]) and len(tokens) < self._max_tokens:
            self._decode([(tokens[-1], self._length + len(tokens) - 1, _ANSWER)], last_only=True)
            tokens.append(llama.llama_sampler_sample(sampler, self.context, -1))
        llama.llama_sampler_free(sampler)
        llama.llama_memory_seq_rm(self._memory, _ANSWER, -1, -1)
        return tokens


def _answer(sequences: SequentialServer, asked: dict[str, Any]) -> dict[str, Any]:
    if not asked:
        return {"tokens": sequences.next()}
    if asked.pop("together", False):
        return {"tokens": sequences.run(**asked)["tokens"]}
    sequences.begin(**asked)
    return {}


if __name__ == "__main__":
    serve(SequentialServer, _answer)
