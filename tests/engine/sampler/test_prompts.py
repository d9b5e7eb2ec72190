"""Who shares a prompt, and what becomes of those whose conversation is laid out otherwise or is too long."""

import pytest

from engine.contract import BadRequest, Request, Turn
from engine.sampler.prompts import PromptTooLong, RunPrompts


def opening(answer="a", asked="b"):
    return (Turn("assistant", answer), Turn("user", asked))


def encode(request):
    """Every turn in order: one letter is one token."""
    said = "".join(turn.text for turn in request.turns) + request.prompt
    if "?" in said:
        raise BadRequest("This model's chat template does not take these turns.")
    return [ord(letter) for letter in said]


def encode_last_first(request):
    """A template that puts something in front of the last turn only, and so changes what was shared."""
    return [0] * len(request.turns) + encode(request)


def prompts(openings, encode=encode, context=100, count=4):
    return RunPrompts(Request("xyz", 1, count, openings=openings), encode, context)


def shared(run):
    """All prompts, with who shares each, until none waits."""
    found = []
    while (each := run.next()) is not None:
        found.append(("".join(map(chr, each.tokens)), each.candidates))
    return found


def test_a_conversation_that_begins_with_the_prompt_shares_it():
    run = prompts({2: opening(), 4: opening("c", "d")})
    assert shared(run) == [("xyz", [1, 2, 3, 4])]
    assert ["".join(map(chr, run.tokens_of(n))) for n in (1, 2, 4)] == ["xyz", "xyzab", "xyzcd"]
    assert [run.room_of(n) for n in (1, 2)] == [97, 95]


def test_one_that_the_template_lays_out_otherwise_has_a_prompt_of_its_own_afterwards():
    run = prompts({1: opening(), 3: opening(), 4: opening("c")}, encode_last_first)
    assert shared(run) == [("xyz", [2]), ("\0\0xyzab", [1, 3]), ("\0\0xyzcb", [4])]


def test_a_run_of_which_no_candidate_has_the_prompt_alone():
    assert shared(prompts({1: opening(), 2: opening()}, count=2)) == [("xyz", [1, 2])]
    assert shared(prompts({1: opening()}, encode_last_first, count=1)) == [("\0\0xyzab", [1])]


def test_further_candidates_join_those_that_share_their_prompt():
    run = prompts({}, count=2)
    first = run.next()
    run.add([3], opening())
    run.add([4], ())
    assert run.take(first.tokens) == [3, 4]
    assert run.next() is None


def test_further_candidates_that_share_nothing_wait():
    run = prompts({}, encode_last_first, count=2)
    first = run.next()
    run.add([3], opening())
    assert run.take(first.tokens) == []
    run.add([4], ())
    assert shared(run) == [("xyz", [4]), ("\0\0xyzab", [3])]


def test_one_without_room_is_refused_alone():
    run = prompts({2: opening("a" * 10)}, context=8, count=2)
    assert shared(run) == [("xyz", [1])]
    assert list(run.refused) == [2]
    assert isinstance(run.refused[2], PromptTooLong)
    run.add([3], opening("?"))
    assert run.waiting == []
    assert "template" in str(run.refused[3])


def test_the_context_to_the_token():
    assert prompts({1: opening()}, context=6, count=1).room_of(1) == 1
    with pytest.raises(PromptTooLong):
        prompts({1: opening()}, context=5, count=1)
    with pytest.raises(PromptTooLong):
        prompts({}, context=3)


def test_one_that_waits_can_be_dropped():
    run = prompts({1: opening()}, encode_last_first, count=2)
    run.next()
    assert run.drop(1)
    assert not run.drop(1)
    assert not run.drop(2)
    assert run.next() is None
