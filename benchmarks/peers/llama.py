"""llama.cpp as a contender: n sequences in one batch over one copy of the prompt, by its low-level interface.

Runs in an environment of its own (``make bench-peers``) and knows nothing of this project. Reads one JSON request a
line, answers each with one line: seconds from the request to the first token, to each sequence's end, and the tokens.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import llama_cpp as llama


class Sequences:
    """A GGUF file, and room for ``most`` sequences of ``context`` tokens each."""

    def __init__(self, path: str, most: int, context: int, threads: int):
        llama.llama_backend_init()
        self.model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
        self.vocab = llama.llama_model_get_vocab(self.model)
        params = llama.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = most * context, 512, 512, most
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True  # sequences share the cells of the prompt
        self.context = llama.llama_init_from_model(self.model, params)
        self.batch = llama.llama_batch_init(512, 0, most)

    def run(self, prompt: list[int], n: int, temperature: float, top_p: float, max_tokens: int, seed: int) -> Any:
        start = time.perf_counter()
        memory = llama.llama_get_memory(self.context)
        llama.llama_memory_clear(memory, True)
        self._decode([(token, at, 0) for at, token in enumerate(prompt)], last_only=True)
        for sequence in range(1, n):
            llama.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
        samplers = [self._sampler(temperature, top_p, seed * 1000 + sequence) for sequence in range(n)]
        tokens: list[list[int]] = [[] for _ in range(n)]
        ended_s: list[float] = [0.0] * n
        outputs = dict.fromkeys(range(n), len(prompt) % 512 - 1 if len(prompt) % 512 else 511)
        first_s = None
        while outputs:
            for sequence, index in list(outputs.items()):
                token = llama.llama_sampler_sample(samplers[sequence], self.context, index)
                tokens[sequence].append(token)
                if llama.llama_vocab_is_eog(self.vocab, token) or len(tokens[sequence]) == max_tokens:
                    ended_s[sequence] = time.perf_counter() - start
                    del outputs[sequence]
            first_s = first_s or time.perf_counter() - start
            active = list(outputs)
            if active:
                line = [(tokens[s][-1], len(prompt) + len(tokens[s]) - 1, s) for s in active]
                self._decode(line, last_only=False)
            outputs = {sequence: index for index, sequence in enumerate(active)}
        for sampler in samplers:
            llama.llama_sampler_free(sampler)
        return {"first_s": first_s, "ended_s": ended_s, "tokens": tokens}

    def _decode(self, line: list[tuple[int, int, int]], *, last_only: bool) -> None:
        """Feed (token, position, sequence), 512 at a time."""
        for begin in range(0, len(line), 512):
            part = line[begin : begin + 512]
            self.batch.n_tokens = len(part)
            for at, (token, position, sequence) in enumerate(part):
                self.batch.token[at], self.batch.pos[at] = token, position
                self.batch.n_seq_id[at], self.batch.seq_id[at][0] = 1, sequence
                self.batch.logits[at] = not last_only or begin + at == len(line) - 1
            if llama.llama_decode(self.context, self.batch):
                raise RuntimeError("llama_decode failed")

    def _sampler(self, temperature: float, top_p: float, seed: int) -> Any:
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        if temperature == 0:
            parts = [llama.llama_sampler_init_greedy()]
        else:
            parts = [
                llama.llama_sampler_init_top_k(40),  # its default; top-p over all ids would cost it dear
                llama.llama_sampler_init_temp(temperature),
                llama.llama_sampler_init_top_p(top_p, 1),
                llama.llama_sampler_init_dist(seed),
            ]
        for part in parts:
            llama.llama_sampler_chain_add(chain, part)
        return chain


def serve(kind: type[Sequences], answer: Callable[[Any, dict[str, Any]], Any]) -> None:
    """Answer what stands on each line of the standard input, with the model and sizes of the command line."""
    path, most, context, threads = sys.argv[1], *map(int, sys.argv[2:5])
    quiet = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    sequences = kind(path, most, context, threads)
    features = llama.llama_print_system_info().decode().strip()
    print(json.dumps({"version": llama.__version__, "features": features}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(sequences, json.loads(line))), flush=True)


if __name__ == "__main__":
    serve(Sequences, lambda sequences, asked: sequences.run(**asked))
