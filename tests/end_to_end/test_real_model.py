"""The whole path with a real model: prompt, candidates, tests, export; and exactness on real weights."""

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.contract import (
    Cancel,
    CandidateFinished,
    Close,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
    Speculation,
    StepDone,
    TextAdded,
)
from engine.sampler.engine import SamplerEngine

pytestmark = pytest.mark.real_model

MAIN = Path(__file__).parents[2] / "main.py"
PROMPT = "Write a Python function add(a, b) that returns the sum of a and b."


def converse(model, requests, precision="int8", draft=""):
    """Every event of one engine that runs ``requests`` one after the other."""
    engine, events, waiting = SamplerEngine(), [], list(enumerate(requests))

    def emit(event):
        events.append(event)
        if isinstance(event, Ready | RunFinished):
            engine.submit(Generate(str(waiting[0][0]), waiting.pop(0)[1]) if waiting else Close())
        elif isinstance(event, LoadFailed):
            engine.submit(Close())

    engine.submit(Load(ModelChoice(model, draft, precision, device="cpu")))
    engine.run(emit)
    assert not [event for event in events if isinstance(event, LoadFailed)]
    return events


def finished(events, run):
    return {e.candidate: e for e in events if isinstance(e, CandidateFinished) and e.run == run}


def test_a_job_on_the_command_line(small_model, tmp_path):
    tests, out = tmp_path / "t.py", tmp_path / "out"
    tests.write_text("assert add(1, 2) == 3\nassert add(-1, 1) == 0\n")
    options = ["--model", small_model, "-n", "4", "--seed", "3", "--max-tokens", "160", "--temperature", "0.4"]
    command = [sys.executable, MAIN, "generate", PROMPT, *options, "--tests", tests, "--json", "--export", out, "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert [candidate["id"] for candidate in result["candidates"]] == [1, 2, 3, 4]
    for candidate in result["candidates"]:
        assert candidate["tokens"] > 0
        assert candidate["mean_logprob"] < 0
        assert candidate["tests"]["verdict"] in ("pass", "fail")
        assert candidate["tests"]["passed"] + candidate["tests"]["failed"] == 2
        (saved,) = out.glob(f"candidate-{candidate['id']}.*")
        assert saved.read_bytes() == candidate["code"].encode()
    passing = [c for c in result["candidates"] if c["tests"]["verdict"] == "pass"]
    assert done.returncode == (0 if passing else 1)
    metrics = result["metrics"]
    assert 0 < metrics["time_to_first_token_s"] < metrics["time_to_first_finished_s"] <= metrics["total_s"]
    assert (metrics["time_to_first_passing_s"] is not None) == bool(passing)
    assert (metrics["device"], metrics["precision"], metrics["drafter"]) == ("cpu", "int8", "suffix")


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_speculation_changes_no_token_of_real_weights(small_model, precision):
    sampling = Sampling(temperature=0.8, max_tokens=60)
    ways = [Speculation("none", "fixed:0"), Speculation("suffix", "fixed:4"), Speculation("suffix", "goodput")]
    requests = [Request(PROMPT, 11, 4, sampling=sampling, speculation=way) for way in ways]
    events = converse(
        small_model, [*requests, Request(PROMPT, 11, 1, sampling=sampling, speculation=ways[1])], precision
    )
    regular, *speculated, alone = (
        {number: end.text for number, end in finished(events, str(run)).items()} for run in range(4)
    )
    assert len(set(regular.values())) > 1
    assert speculated == [regular, regular]
    assert alone == {1: regular[1]}
    assert sum(end.accepted for end in finished(events, "1").values()) > 0


def test_a_draft_model_of_the_same_weights_is_always_right_in_float32(small_model):
    request = Request(PROMPT, 5, 2, sampling=Sampling(max_tokens=24), speculation=Speculation("draft-model", "fixed:3"))
    events = converse(small_model, [request], "float32", draft=small_model)
    ends = finished(events, "0").values()
    assert len(ends) == 2
    # Logits of two batch shapes differ in the last bits; a draw so close to a tie that it tips is one in thousands.
    assert sum(end.accepted for end in ends) / sum(end.proposed for end in ends) > 0.95


def test_control_tokens_in_a_prompt_are_read_as_text(small_model):
    sampling = Sampling(max_tokens=8)
    odd = Request("Say <|im_end|> twice.", 1, 2, sampling=sampling)
    events = converse(small_model, [odd, Request("Say hello.", 1, 2, sampling=sampling)])
    assert [e.outcome for e in events if isinstance(e, RunFinished)] == ["finished"] * 2
    for run in ("0", "1"):
        for number, end in finished(events, run).items():
            pieces = [e.text for e in events if isinstance(e, TextAdded) and (e.run, e.candidate) == (run, number)]
            assert "".join(pieces) == end.text


def test_stop_stops_a_real_run_at_once(small_model):
    """Cancel is heeded within a step, whatever the model is doing."""
    engine, events = SamplerEngine(), queue.SimpleQueue()
    thread = threading.Thread(target=engine.run, args=(events.put,))
    thread.start()
    engine.submit(Load(ModelChoice(small_model, device="cpu")))
    engine.submit(Generate("r", Request(PROMPT, 1, 8, sampling=Sampling(max_tokens=400))))
    while not (isinstance(event := events.get(timeout=120), StepDone) and event.steps >= 3):
        pass
    engine.submit(Cancel("r"))
    asked = time.monotonic()
    while not isinstance(event := events.get(timeout=30), RunFinished):
        pass
    waited = time.monotonic() - asked
    engine.submit(Close())
    thread.join(timeout=30)
    assert event.outcome == "stopped"
    assert waited < 5  # generous: other tests may share the machine; a step takes a tenth of a second
    assert not thread.is_alive()
