"""How long do others take for the same shape in the same run: transformers' ``generate``, and vLLM if installed?"""

import importlib.util
import time
from typing import Any

import torch

from benchmarks.on_gpu.stage import SHAPES, Stage

TOKENS, ROWS, PROMPT = 96, 8, 64


@torch.inference_mode()
def generate(stage: Stage) -> dict[str, Any]:
    """Stock ``generate`` in the same precision: 8 sequences, no drafts, its default cache."""
    tokens, rows = (4, 2) if stage.dry else (TOKENS, ROWS)
    module: Any = stage.module("7B")
    module.set_attn_implementation("sdpa")
    try:
        ids = torch.arange(1, PROMPT + 1, device=stage.device)[None]
        options = {"do_sample": True, "top_p": 0.95, "temperature": 0.8, "num_return_sequences": rows}
        options |= {"min_new_tokens": tokens, "max_new_tokens": tokens, "pad_token_id": 0, "use_cache": True}
        mask = torch.ones_like(ids)
        module.generate(ids, attention_mask=mask, **{**options, "min_new_tokens": 4, "max_new_tokens": 4})
        stage.synchronize()
        start = time.perf_counter()
        module.generate(ids, attention_mask=mask, **options)
        stage.synchronize()
        seconds = time.perf_counter() - start
    finally:
        module.set_attn_implementation("eager")
    stage.say(
        f"stock generate, b = {rows}: {1e3 * seconds / tokens:.2f} ms/token/seq, {rows * tokens / seconds:.0f} tokens/s"
    )
    return {"b": rows, "ms": 1e3 * seconds / tokens, "tokens_per_s": rows * tokens / seconds}


def vllm(stage: Stage) -> dict[str, Any]:
    """vLLM with dummy weights of the same shape, where it is installed."""
    if stage.dry or importlib.util.find_spec("vllm") is None:
        stage.say("vLLM is not installed here.")
        return {"available": False}
    import tempfile

    from transformers import AutoConfig
    from vllm import LLM, SamplingParams

    stage.forget("7B")
    with tempfile.TemporaryDirectory() as folder:
        AutoConfig.for_model("qwen2", architectures=["Qwen2ForCausalLM"], **SHAPES["7B"]).save_pretrained(folder)
        engine = LLM(
            folder, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", gpu_memory_utilization=0.5
        )
        parameters = SamplingParams(
            n=ROWS, temperature=0.8, top_p=0.95, min_tokens=TOKENS, max_tokens=TOKENS, ignore_eos=True, detokenize=False
        )
        prompt = {"prompt_token_ids": list(range(1, PROMPT + 1))}
        engine.generate([prompt], parameters)
        start = time.perf_counter()
        engine.generate([prompt], parameters)
        seconds = time.perf_counter() - start
    stage.say(f"vLLM, b = {ROWS}: {1e3 * seconds / TOKENS:.2f} ms/token/seq, {ROWS * TOKENS / seconds:.0f} tokens/s")
    return {"available": True, "ms": 1e3 * seconds / TOKENS, "tokens_per_s": ROWS * TOKENS / seconds}
