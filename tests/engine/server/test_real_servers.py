"""The contract, against real servers with a real small model: llama-cpp-python's, and transformers'.

What these servers do is theirs; what is looked at is that Bassline says the truth about it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.cli import main
from engine.contract import Cancel, LoadFailed, Ready, Sampling, TextAdded, Turn
from engine.server.client import Timeouts
from engine.server.probe import probe
from engine.session.servers import Server
from tests.conftest import SMALL_MODEL
from tests.engine.server.environments import NotToBeHad, environment, serving
from tests.engine.server.playing import Playing, playing, request

PROMPT = "Write a Python function add(a, b) that returns the sum of a and b."
PATIENT = Timeouts(connect_s=10, silence_s=120, busy_s=30)
SERVING = ("openai>=1.98", "uvicorn", "fastapi", "starlette", "rich")
LLAMA = ("llama-cpp-python[server]>=0.3.16",)

pytestmark = [pytest.mark.real_model, pytest.mark.real_server, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Real:
    name: str
    address: str


@pytest.fixture(scope="module")
def llama(small_model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """llama-cpp-python's server. It has to be compiled, which CI does not do."""
    try:
        python = environment(small_model_cache, "llama", LLAMA, build=bool(os.environ.get("BASSLINE_BUILD_SERVERS")))
    except NotToBeHad as error:
        pytest.skip(str(error))
    gguf = next((small_model_cache / "models" / "downloads").glob("*/SmolLM2*.gguf"))
    options = ["--n_ctx", "2048", "--n_threads", "2", "--logits_all", "true", "--model_alias", "smollm2"]
    command = [str(python), "-m", "llama_cpp.server", "--model", str(gguf), "--port", "{port}", *options]
    log = tmp_path_factory.mktemp("llama") / "log"
    with serving([*command, "--interrupt_requests", "false"], log) as address:
        yield Real("llama", address)


@pytest.fixture(scope="module")
def transformers(small_model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """``transformers serve``, on the very packages that the tests run on."""
    try:
        python = environment(small_model_cache, "transformers", SERVING, on_top_of_ours=True)
    except NotToBeHad as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("transformers")
    model = _servable(small_model_cache, folder / "smollm2")
    command = [str(python), "-m", "transformers.cli.transformers", "serve", str(model), "--device", "cpu"]
    with serving([*command, "--port", "{port}", "--host", "127.0.0.1"], folder / "log", HF_HUB_OFFLINE="1") as address:
        yield Real("transformers", address)


def _servable(home: Path, folder: Path) -> Path:
    """The small model in float32, with what its converted copy lacks: the class's name, and that it is to sample."""
    from engine.models.preparation import prepare

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASSLINE_HOME", str(home))
        options = {"device": "cpu", "progress": lambda _: None, "cancelled": lambda: False}
        prepared = prepare(SMALL_MODEL, precision="float32", **options)
    folder.mkdir()
    for file in prepared.folder.iterdir():
        if file.suffix == ".safetensors":
            (folder / file.name).symlink_to(file)
        elif file.is_file():
            shutil.copy(file, folder / file.name)
    for name, more in (
        ("config.json", {"architectures": ["LlamaForCausalLM"]}),
        ("generation_config.json", {"do_sample": True}),
    ):
        config = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(config | more))
    return folder


@pytest.fixture(scope="module", params=["llama", "transformers"])
def real(request: pytest.FixtureRequest) -> Real:
    found: Real = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def connected(real: Real) -> Iterator[Playing]:
    """One engine for all tests of a server: each load asks it a few questions."""
    with playing(PATIENT) as play:
        assert isinstance(play.load(real.address), Ready)
        yield play


@pytest.fixture
def play(connected: Playing) -> Playing:
    connected.said.clear()
    return connected


def test_what_is_found_out_is_true(real: Real) -> None:
    found = probe(Server("", real.address), timeouts=PATIENT)
    assert found.chat
    assert found.seed, "both heed it, one request after another"
    assert not found.n, "neither does"
    assert found.logprobs == (real.name == "llama")
    assert found.dialect.takes("top_k") == (real.name == "llama")
    assert found.dialect.gives_reason
    assert found.first_token_s is not None


def test_candidates_stream_side_by_side(real: Real, play: Playing) -> None:
    outcome = play.play(request(3, PROMPT, max_tokens=24, seed=1))
    assert (outcome.outcome, outcome.reason) == ("finished", "")
    assert set(play.texts) == {1, 2, 3}
    assert len(set(play.texts.values())) == 3
    for end in play.ends.values():
        assert (end.state, end.stop_reason) in (("done", "stop"), ("cut", "length"))
        assert 1 <= end.tokens <= 25
        assert (end.mean_logprob is not None) == (real.name == "llama")
    assert sum(isinstance(event, TextAdded) for event in play.said) > 10


def test_the_seed_gives_the_text_again_one_at_a_time(play: Playing) -> None:
    play.play(request(2, PROMPT, max_tokens=16, seed=5, width=1))
    first = play.texts
    play.said.clear()
    play.play(request(1, PROMPT, max_tokens=16, seed=5, width=1, first_candidate=2))
    assert play.texts == {2: first[2]}


def test_a_stop_string_is_not_shown(play: Playing) -> None:
    cold = Sampling(temperature=0.0, max_tokens=40)
    play.play(request(1, PROMPT, sampling=cold))
    whole = play.texts[1]
    stop = whole[len(whole) // 2 :][:3]
    play.said.clear()
    play.play(request(1, PROMPT, sampling=Sampling(temperature=0.0, max_tokens=40, stop=(stop,))))
    assert play.texts == {1: whole[: whole.index(stop)]}
    assert play.ends[1].stop_reason == "stop"


def test_a_text_is_completed(play: Playing) -> None:
    outcome = play.play(
        request(1, "def add(a, b):\n    return a", mode="completion", sampling=Sampling(0.0, max_tokens=4))
    )
    assert outcome.outcome == "finished"
    assert "b" in play.texts[1]


def test_earlier_turns_are_heard(play: Playing) -> None:
    turns = (Turn("user", "My name is Zanzibar."), Turn("assistant", "Hello Zanzibar!"))
    play.play(request(1, "What is my name?", sampling=Sampling(0.0, max_tokens=24), turns=turns, system=""))
    assert "Zanzibar" in play.texts[1]


def test_stop_leaves_a_server_that_answers(play: Playing) -> None:
    play.start(request(2, PROMPT, max_tokens=1500))
    play.until(lambda event: isinstance(event, TextAdded), 60)
    play.submit(Cancel("run"))
    assert play.finish(30).outcome == "stopped"
    play.said.clear()
    assert play.play(request(1, PROMPT, max_tokens=8)).outcome == "finished"


def test_options_beyond_the_common_ones_are_heeded_or_refused(real: Real, play: Playing) -> None:
    outcome = play.play(request(1, PROMPT, sampling=Sampling(max_tokens=4, top_k=3)))
    if real.name == "llama":
        assert outcome.outcome == "finished"
    else:
        assert outcome.reason == "This server ignores the top-k; switch it off, or choose another server."


def test_a_gap_is_refused_by_servers_that_do_not_fill_it(play: Playing) -> None:
    """One has a model that cannot, and the other writes the text after the gap behind the answer."""
    gap = request(1, "def add(a, b):\n    return", mode="fill-in-the-middle", suffix="\n\nprint(add(1, 2))")
    assert "does not fill gaps" in play.play(gap).reason


def test_a_model_that_is_not_there(real: Real) -> None:
    if real.name == "llama":
        pytest.skip("it answers with its one model, whatever the name")
    with playing(PATIENT) as other:
        failed = other.load(real.address, model="another")
    assert isinstance(failed, LoadFailed)
    assert "another" in failed.reason


@pytest.mark.sandbox
def test_the_whole_path_on_the_command_line(real: Real, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = tmp_path / "tests.py"
    tests.write_text("assert add(2, 3) == 5\n")
    words = ["generate", PROMPT, "--server", real.address, "-n", "3", "--seed", "1", "--max-tokens", "60"]
    code = main([*words, "--tests", str(tests), "--yes", "--export", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert code in (0, 1), said.err
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {candidate["state"] for candidate in result["candidates"]} <= {"done", "cut"}
    assert code == (0 if any(c["tests"] and c["tests"]["verdict"] == "pass" for c in result["candidates"]) else 1)
