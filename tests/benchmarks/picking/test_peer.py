"""llama.cpp as an engine: its side of the contract with a stand-in, and the real one where it is built."""

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.picking import peer
from benchmarks.picking.peer import SequentialEngine
from engine.contract import (
    BasslineError,
    Cancel,
    CandidateFinished,
    Close,
    Event,
    Generate,
    Load,
    LoadFailed,
    ModelChoice,
    Ready,
    Request,
    RunFinished,
    Sampling,
)
from engine.models.loaded_model import LoadedModel

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / ".venv-peers/bin/python"
Say = Callable[..., list[Event]]


class StandIn:
    """Answers with the ids it was made with, in turn; ``asked`` is what it heard."""

    about = {"version": "0", "features": "none"}  # noqa: RUF012
    answers: list[list[int]] = []  # noqa: RUF012
    on_ask: Callable[[], None] = staticmethod(lambda: None)
    asked: list[dict] = []  # noqa: RUF012

    def __init__(self, *_: object):
        StandIn.asked = []

    def ask(self, **request: object) -> dict:
        self.asked.append(request)
        if request:
            self.given = 0
            return {"tokens": self.answers} if "together" in request else {}
        self.on_ask()
        self.given += 1
        if self.given > len(self.answers):
            raise BasslineError("The llama.cpp process has ended.")
        return {"tokens": self.answers[self.given - 1]}

    def close(self) -> None: ...


@pytest.fixture
def engine(loaded_small_model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> SequentialEngine:
    monkeypatch.setattr(peer, "SequentialLlamaCpp", StandIn)
    monkeypatch.setattr(peer, "loaded", lambda *_, **__: loaded_small_model)
    return SequentialEngine("small", Path("python"), Path("small.gguf"), 8, 16)


@pytest.fixture
def say(engine: SequentialEngine) -> Iterator[Say]:
    yield from _speaking(engine)


def _speaking(engine: SequentialEngine) -> Iterator[Say]:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    thread = threading.Thread(target=engine.run, args=(events.put,))
    thread.start()

    def say(message: Load | Generate) -> list[Event]:
        """All events up to the last one about it."""
        engine.submit(message)
        heard = [events.get(timeout=120)]
        while not isinstance(heard[-1], RunFinished | Ready | LoadFailed):
            heard.append(events.get(timeout=120))
        return heard

    yield say
    engine.submit(Close())
    thread.join(20)
    assert not thread.is_alive()


def _answers(events: list[Event]) -> list[CandidateFinished]:
    return [event for event in events if isinstance(event, CandidateFinished)]


def test_one_answer_after_another_to_the_same_prompt(say: Say, loaded_small_model: LoadedModel) -> None:
    end = min(loaded_small_model.eos_ids)
    StandIn.answers = [[*loaded_small_model.tokenizer("first").input_ids, end], [100] * 16]
    assert say(Load(ModelChoice()))[0].model == "small.gguf"
    request = Request("hello", 3, 2, goal="first", sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=16))
    first, second = _answers(said := say(Generate("a", request)))
    assert (first.candidate, first.text, first.state, first.stop_reason) == (1, "first", "done", "stop")
    assert (second.candidate, second.tokens, second.state, second.stop_reason) == (2, 16, "cut", "length")
    assert said[-1] == RunFinished("a", "finished")
    prompt = {"prompt": loaded_small_model.encode(request), "n": 2, "seed": 3}
    assert StandIn.asked == [prompt | {"max_tokens": 16, "temperature": 0.5, "top_p": 0.9}, {}, {}]


def test_no_further_answer_is_begun_once_one_is_enough(say: Say, engine: SequentialEngine) -> None:
    StandIn.answers = [[100, 101], [100, 101], [100, 101]]
    say(Load(ModelChoice()))
    StandIn.on_ask = staticmethod(lambda: engine.submit(Cancel("a")))
    said = say(Generate("a", Request("hello", 0, 3, goal="first")))
    StandIn.on_ask = staticmethod(lambda: None)
    assert len(_answers(said)) == 1
    assert said[-1].outcome == "stopped"
    assert len(_answers(say(Generate("b", Request("hello", 0, 3, goal="first"))))) == 3


def test_all_in_one_batch_where_only_the_answers_matter(say: Say) -> None:
    StandIn.answers = [[100, 101], [100, 102]]
    say(Load(ModelChoice()))
    assert [answer.candidate for answer in _answers(say(Generate("a", Request("hello", 0, 2))))] == [1, 2]
    assert [asked.get("together") for asked in StandIn.asked] == [True]


def test_a_process_that_ends_is_a_failed_run(say: Say) -> None:
    StandIn.answers = [[100, 101]]
    say(Load(ModelChoice()))
    said = say(Generate("a", Request("hello", 0, 2, goal="first")))
    assert (said[-1].outcome, said[-1].reason) == ("failed", "The llama.cpp process has ended.")


def test_what_is_missing_is_said_at_load(loaded_small_model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "loaded", lambda *_, **__: loaded_small_model)
    for say in _speaking(SequentialEngine("small", ROOT / "none", Path("small.gguf"), 2, 16)):
        assert "make bench-peers" in say(Load(ModelChoice()))[0].reason


@pytest.mark.real_model
@pytest.mark.skipif(not PEERS.is_file(), reason="llama.cpp is not built: make bench-peers")
def test_keys_and_values_of_the_prompt_serve_every_answer(small_model: str) -> None:
    """Greedy, every answer must be the same, with or without others beside it, and for a prompt that comes again."""
    from benchmarks.target_models import gguf_of

    engine = SequentialEngine(small_model, PEERS, gguf_of(small_model), 3, 16)
    greedy = Sampling(temperature=0.0, max_tokens=16)
    for say in _speaking(engine):
        assert isinstance(say(Load(ModelChoice()))[0], Ready)
        prompts = ("Write a haiku about rivers.", "Write a Python function that adds.")
        texts = {}
        for at, (prompt, goal) in enumerate((p, g) for g in ("first", "all", "first") for p in prompts):
            said = say(Generate(str(at), Request(prompt, 0, 3, goal=goal, sampling=greedy)))
            assert said[-1].outcome == "finished"
            texts.setdefault(prompt, set()).update(answer.text for answer in _answers(said))
        one, other = (texts[prompt] for prompt in prompts)
        assert len(one) == len(other) == 1
        assert one != other
        warm = Request(prompts[0], 0, 3, goal="first", sampling=Sampling(temperature=1.0, max_tokens=16))
        assert len({answer.text for answer in _answers(say(Generate("warm", warm)))}) == 3
