"""Record real answers token by token, to be replayed on a machine that has not got the model.

    python -m benchmarks.record_traces [--model default] [--prompt roman edit lru] [-n 32] [--out benchmarks/traces]

Under coupled acceptance an answer is the same whatever was guessed ahead, so its tokens are all there is to replay: the
real suffix drafter guesses, and a guess is accepted where the recorded answer says the same. A recording of 32
candidates serves every smaller number.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from engine.contract import Request, Sampling  # noqa: E402
from engine.models.loaded import LoadedModel  # noqa: E402
from engine.models.loader import load  # noqa: E402
from engine.sampler.acceptance import Coupled  # noqa: E402
from engine.sampler.cost_table import CostTable  # noqa: E402
from engine.sampler.decoder import Decoder  # noqa: E402
from engine.sampler.drafters.suffix import SuffixDrafter  # noqa: E402
from engine.sampler.engine import exact_cache_dtype  # noqa: E402
from engine.sampler.policies.fixed import Fixed  # noqa: E402
from engine.sampler.ragged_model import RaggedModel  # noqa: E402
from engine.sampler.stopping import Limits, Row  # noqa: E402

HERE = Path(__file__).parent
PROMPTS = tomllib.loads((HERE / "prompts.toml").read_text(encoding="utf-8"))
TEMPERATURES = (0.2, 0.8)
SEED = 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_traces", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--prompt", nargs="+", choices=PROMPTS, default=["roman", "edit", "lru"])
    parser.add_argument("-n", type=int, default=32, help="candidates")
    parser.add_argument("--max-tokens", type=int, default=224)
    parser.add_argument("--out", type=Path, default=HERE / "traces")
    options = parser.parse_args(arguments)
    quiet = {"progress": lambda _: None, "cancelled": lambda: False}
    loaded = load(options.model, precision="auto", device="cpu", offline=False, **quiet)  # type: ignore[arg-type]
    model = RaggedModel(loaded.module, loaded.vocabulary, cache_dtype=exact_cache_dtype(loaded))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.prompt:
        for temperature in TEMPERATURES:
            sampling = Sampling(temperature, top_p=0.95, max_tokens=options.max_tokens)
            prompt = loaded.encode(Request(PROMPTS[name], SEED, sampling=sampling))
            trace = {
                "prompt_name": name,
                "model": loaded.name,
                "precision": loaded.precision,
                "temperature": temperature,
                "top_p": sampling.top_p,
                "max_tokens": options.max_tokens,
                "seed": SEED,
                "prompt": list(prompt),
                "candidates": answers(model, loaded, prompt, options.n, sampling),
            }
            path = options.out / f"{name}-{temperature}.json"
            path.write_text(json.dumps(trace, separators=(",", ":")), encoding="utf-8")
            print(f"{path}: {sum(map(len, trace['candidates']))} tokens")
    return 0


def answers(model: RaggedModel, loaded: LoadedModel, prompt: list[int], n: int, sampling: Sampling) -> list[list[int]]:
    limits = Limits(loaded.eos_ids, sampling.max_tokens)
    rows = [Row(number, SEED, prompt, limits, loaded.decode, sampling) for number in range(1, n + 1)]
    decoder = Decoder(model, SuffixDrafter(), Fixed(2), Coupled(), CostTable({1: 1.0, 64: 2.0}))
    logits = model.prefill(prompt)
    assert logits is not None
    decoder.drafter.begin(prompt, lambda done: True)
    decoder.join(rows, logits)
    decoder.leave()
    while decoder.rows:
        decoder.step()
        decoder.leave()
    model.clear()
    return [row.tokens for row in rows]


if __name__ == "__main__":
    sys.exit(main())
