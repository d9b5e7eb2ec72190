"""A small result of the decode benchmark, as it is written to JSON."""

import json
from dataclasses import asdict, replace
from typing import Any

from benchmarks.timing import Steps, Timing

MACHINE = {"cpu": "a processor, 2 cores", "python": "3.11", "date": "a day", "commit": "abc"}
OPTIONS = {
    "model": "default",
    "draft": "",
    "precision": "auto",
    "prompts": ["roman", "lru"],
    "n": [1, 4],
    "max_tokens": 512,
    "temperature": [0.2, 0.8],
    "repeat": 1,
    "contenders": ["assisted", "llama.cpp"],
    "against": "goodput",
}


def timing(rate: float, ms: float, steps: Steps | None = None) -> Timing:
    drafts: dict[str, Any] = {"acceptance": 0.5, "draft_length": 2.0, "plain_share": 0.25} if steps else {}
    return replace(Timing(ms - 1, ms + 1, ms, rate, 0.25, 9.0, 400, 1536.0), steps=steps, **drafts)


def turn(temperature: float, n: int, prompt: str, factor: float, others_load: float) -> dict[str, Any]:
    """``factor``: how much faster everyone but the one without drafts is."""
    steps = Steps([n] * 16, [2 * n] * 16, [n] * 16)
    timings = {
        "no draft": timing(20.0 * n, 50.0),
        "goodput": timing(20.0 * n * factor, 50.0 / factor, steps),
        "assisted": timing(10.0, 100.0),
        "llama.cpp": timing(16.0 * n, 62.5),
    }
    if n > 1:
        del timings["assisted"]
    return {
        "temperature": temperature,
        "n": n,
        "prompt": prompt,
        "repeat": 0,
        "others_load": others_load,
        "timings": {name: asdict(one) for name, one in timings.items()},
    }


def decode_result() -> dict[str, Any]:
    """At temperature 0.2 somebody else was at work during one turn."""
    turns = [
        turn(temperature, n, prompt, factor, others_load=0.5 if (temperature, n, prompt) == (0.2, 4, "lru") else 0.01)
        for temperature in (0.2, 0.8)
        for n in (1, 4)
        for prompt, factor in (("roman", 1.25), ("lru", 2.0))
    ]
    result = {"question": "decode", "options": OPTIONS, "machine": MACHINE, "peers": {}, "turns": turns}
    read: dict[str, Any] = json.loads(json.dumps(result))
    return read
