"""What is known of the next prompt: a beginning of the last one, and of an answer to it."""

import pytest
import torch

from engine.sampler import prefix_reuse
from engine.sampler.prefix_reuse import PrefixMatch, PrefixReuse, common_length
from tests.engine.sampler.running import decode, new_rows, open_decoder, tokens_of
from tests.engine.sampler.tiny import build

PROMPT = [10, 11, 12]


def segment(tokens, layers=2, heads=2, dim=4):
    """Keys and values that say which answer they are of."""
    return [(torch.full((1, heads, tokens, dim), float(tokens)), torch.zeros(1, heads, tokens, dim))] * layers


def recalled(*answers, prompt=PROMPT):
    """A recall of these answers; as of every row, the last token of each was never fed."""
    known = PrefixReuse(prompt)
    segments = [segment(len(answer) - 1) for answer in answers]
    for answer, own in zip(answers, segments, strict=True):
        known.keep(answer, own)
    return known, segments


def found(known, prompt):
    match = known.match(prompt)
    return match.prompt, match.answer


def test_the_last_token_of_a_prompt_is_always_read():
    """Its logits are what the answer begins with."""
    known, _ = recalled([20, 21, 22, 23])
    assert found(known, PROMPT) == (2, 0)
    assert found(known, [*PROMPT, 20]) == (3, 0)
    assert found(known, [*PROMPT, 20, 21]) == (3, 1)
    assert found(known, [*PROMPT, 20, 21, 22]) == (3, 2)
    assert found(known, [10]) == (0, 0)
    assert found(known, [10, 11]) == (1, 0)


def test_the_last_token_of_an_answer_was_never_fed():
    known, _ = recalled([20, 21, 22, 23])
    assert found(known, [*PROMPT, 20, 21, 22, 23, 30, 31]) == (3, 3)
    assert found(known, [*PROMPT, 20, 21, 22, 40, 30, 31]) == (3, 3)
    assert found(known, [*PROMPT, 20, 21, 40, 41]) == (3, 2)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
def test_of_all_answers_the_longest_match_counts(order):
    answers = [[20, 21, 99, 98, 97], [20, 21, 22, 23, 24], [20, 50, 51, 52, 53, 54]]
    known, segments = recalled(*(answers[at] for at in order))
    match = known.match([*PROMPT, 20, 21, 22, 23, 7])
    assert (match.prompt, match.answer) == (3, 4)
    assert match.segment is segments[order.index(1)]


def test_an_answer_counts_only_behind_the_whole_prompt():
    known, _ = recalled([20, 21, 22])
    assert found(known, [10, 11, 20, 21, 22]) == (2, 0)
    assert found(known, [10, 99]) == (1, 0)
    assert known.match([99, 98]) == PrefixMatch(0)
    assert found(known, [*PROMPT, 7, 8]) == (3, 0)
    assert known.match([*PROMPT, 7, 8]).segment is None


def test_answers_are_kept_as_long_as_they_fit_into_the_budget(monkeypatch):
    """To the byte; a short one that still fits is kept, whatever did not fit before it."""
    one = sum(part.nbytes for layer in segment(4) for part in layer)
    monkeypatch.setattr(prefix_reuse, "BUDGET", 2 * one + one // 2)
    answers = [[n, 1, 2, 3, 4] for n in (20, 30, 40)]
    known, _ = recalled(*answers)
    assert [found(known, [*PROMPT, *answer, 9])[1] for answer in answers] == [4, 4, 0]
    known.keep([50, 1, 2], segment(2))
    assert found(known, [*PROMPT, 50, 1, 2])[1] == 2
    known.keep([60, 1], segment(1))
    assert found(known, [*PROMPT, 60, 1, 2])[1] == 0
    monkeypatch.setattr(prefix_reuse, "BUDGET", 2 * one)
    known, _ = recalled(*answers[:2])
    assert found(known, [*PROMPT, *answers[1], 9])[1] == 4


def test_common_beginnings():
    assert common_length([1, 2, 3], [1, 2, 4]) == 2
    assert common_length([1, 2], [1, 2, 4]) == common_length([1, 2, 4], [1, 2]) == 2
    assert common_length([], [1]) == common_length([2], [1]) == 0


@pytest.mark.parametrize("cut", [0, 1, 2, 7, 14, 15, 16])
@pytest.mark.parametrize("more", [[], [5, 6, 7]])
def test_a_prompt_that_goes_on_inside_an_answer_says_what_it_says_read_afresh(cut, more):
    """The old prompt and a beginning of one of several answers to it, and perhaps something new."""
    target, prompt = build(spread=0.4), [5, 9, 33, 70]
    decoder = open_decoder(target, drafter="suffix", policy="fixed:3")
    answers = tokens_of(decode(decoder, prompt, new_rows([1, 2, 3], prompt, 16)))
    fed, forward = [], decoder.target.forward

    def counted(tokens, starts, **options):
        fed.extend(token for row in tokens for token in row)
        return forward(tokens, starts, **options)

    for answer in answers:
        follow_up = [*prompt, *answer[:cut], *more]
        known = min(len(prompt) + min(cut, len(answer) - 1), len(follow_up) - 1)
        fed.clear()
        decoder.target.forward = counted
        last = decoder.target.prefill(follow_up)
        decoder.target.forward = forward
        assert fed == follow_up[known:]
        fresh = open_decoder(target).target.prefill(follow_up)
        torch.testing.assert_close(last.logits, fresh.logits, rtol=1e-4, atol=1e-4)
        decode(decoder, prompt, new_rows([1, 2, 3], prompt, 16))  # the answers are there again
