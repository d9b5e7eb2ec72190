"""Record real answers token by token, to be replayed on a machine that does not have the model.

    python -m benchmarks.record_traces [--model NAME] [--prompt roman edit lru] [-n 32] [--out benchmarks/traces]

Under coupled acceptance an answer is the same whatever was guessed ahead, so its tokens are all there is to replay: the
real suffix drafter guesses, and a guess is accepted where the recorded answer says the same. A recording of 32
candidates serves every smaller number.
"""

import argparse
import json
import sys
from pathlib import Path

from engine.device import prepare_environment

prepare_environment()  # before torch is imported

from benchmarks.prompts import PROMPTS  # noqa: E402
from benchmarks.target_models import MEASURED, answers, loaded  # noqa: E402
from engine.contract import Request, Sampling  # noqa: E402
from engine.sampler.engine import exact_cache_dtype  # noqa: E402
from engine.sampler.ragged_model import RaggedModel  # noqa: E402

HERE = Path(__file__).parent
TEMPERATURES = (0.2, 0.8)
SEED = 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_traces", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MEASURED)
    parser.add_argument("--prompt", nargs="+", choices=PROMPTS, default=["roman", "edit", "lru"])
    parser.add_argument("-n", type=int, default=32, help="candidates")
    parser.add_argument("--max-tokens", type=int, default=224)
    parser.add_argument("--out", type=Path, default=HERE / "traces")
    options = parser.parse_args(arguments)
    source = loaded(options.model, device="cpu")
    model = RaggedModel(source.module, source.vocabulary, cache_dtype=exact_cache_dtype(source))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.prompt:
        for temperature in TEMPERATURES:
            sampling = Sampling(temperature, top_p=0.95, max_tokens=options.max_tokens)
            request = Request(PROMPTS[name], SEED, options.n, sampling=sampling)
            prompt, candidates = answers(source, model, request)
            trace = {
                "prompt_name": name,
                "model": source.name,
                "precision": source.precision,
                "temperature": temperature,
                "top_p": sampling.top_p,
                "max_tokens": options.max_tokens,
                "seed": SEED,
                "prompt": prompt,
                "candidates": candidates,
            }
            path = options.out / f"{name}-{temperature}.json"
            path.write_text(json.dumps(trace, separators=(",", ":")), encoding="utf-8")
            print(f"{path}: {sum(map(len, trace['candidates']))} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
