"""The suffix drafter: how well it guesses, on answers of a real model, and how much it keeps."""

import gc
import json
from pathlib import Path

import pytest

from engine.sampler.budget import DraftBudget
from engine.sampler.drafters import copies
from engine.sampler.drafters.confidence import LONGEST
from engine.sampler.drafters.copies import CROWD, SHORTEST, Copies, following, vote
from engine.sampler.drafters.suffix import SuffixDrafter
from tests.engine.sampler.running import new_rows

TRACES = Path(__file__).parents[3] / "benchmarks" / "traces"
DRAFTS = 4
# Of eight candidates side by side: guesses that stayed in a step and row, and the share of all guesses that did.
QUALITY = {
    "edit-0.2": (0.4597, 0.3746),
    "edit-0.8": (0.9336, 0.5411),
    "lru-0.2": (0.5717, 0.3691),
    "lru-0.8": (0.5782, 0.3671),
    "roman-0.2": (0.2042, 0.1819),
    "roman-0.8": (0.5281, 0.3484),
}


def replay(name, drafter, candidates=8):
    """Decode recorded answers: guesses in a row and step that stayed, and the share of guesses that did."""
    trace = json.loads((TRACES / f"{name}.json").read_text(encoding="utf-8"))
    answers = dict(enumerate(trace["candidates"][:candidates], start=1))
    rows = new_rows(answers, trace["prompt"], max_tokens=1000)
    drafter.begin(trace["prompt"], lambda done: True)
    steps = guessed = right = 0
    for row in rows:
        row.commit(answers[row.candidate][:1], [0.0])
    while going := [row for row in rows if len(row.tokens) < len(answers[row.candidate])]:
        proposals = drafter.propose(going, DraftBudget.of([DRAFTS] * len(going)))
        for row, guesses in zip(going, proposals.tokens, strict=True):
            ahead = answers[row.candidate][len(row.tokens) :]
            stays = next((n for n, (a, b) in enumerate(zip(guesses, ahead, strict=False)) if a != b), len(guesses))
            tokens = ahead[: stays + 1]
            steps, guessed, right = steps + 1, guessed + len(guesses), right + min(stays, len(tokens))
            row.commit(tokens, [0.0] * len(tokens), proposed=len(guesses))
    return right / steps, right / guessed


@pytest.mark.parametrize("name", QUALITY)
def test_guesses_on_recorded_answers_are_as_good_as_they_were(name):
    """To half a percent. A guess is never wrong in a way that a text would show, so nothing else would notice."""
    per_step, share = replay(name, SuffixDrafter())
    assert per_step >= 0.995 * QUALITY[name][0], (per_step, share)
    assert share >= 0.995 * QUALITY[name][1], (per_step, share)


def said(index, tokens):
    text = []
    for token in tokens:
        index.append(text, token)
    return text


def test_a_place_is_where_the_next_token_stands():
    index = Copies()
    text = said(index, [5, 6, 7, 8])
    assert index.longest_match([5, 6]) == (2, [(text, 2)])
    assert index.longest_match([9, 5, 6, 7]) == (3, [(text, 3)])
    assert index.longest_match([7, 8]) == (0, [])  # nothing follows yet
    assert index.longest_match([6]) == (0, [])
    assert vote([(text, 2)], 2)[0] == 7
    assert following([(text, 2)], 7) == [(text, 3)]
    assert following([(text, 2)], 8) == []


def test_matches_are_told_apart_up_to_the_longest():
    index, line = Copies(), list(range(100, 120))
    texts = [said(index, [*line[-length:], 7]) for length in range(SHORTEST, LONGEST + 3)]
    match, places = index.longest_match(line)
    assert match == LONGEST
    assert [text for text, _ in places] == texts[LONGEST - SHORTEST :]
    for length in range(SHORTEST, LONGEST):
        assert index.longest_match([9, *line[-length:]])[0] == length


def test_a_candidate_copies_from_its_prompt_its_siblings_and_itself():
    drafter = SuffixDrafter()
    drafter.begin([1, 2, 3, 4, 5, 6], lambda done: True)
    first, second = new_rows([1, 2], [1, 2, 3, 4, 5, 6], max_tokens=100)

    def guessed(row, *tokens):
        row.commit(list(tokens), [0.0] * len(tokens))
        return drafter.propose([first, second], DraftBudget.of([3, 3])).tokens[row.candidate - 1]

    assert guessed(first, 2, 3) == [4, 5, 6]
    assert guessed(first, 40, 41, 42, 43) == []
    assert guessed(second, 40, 41) == [42, 43]
    assert guessed(second, 50, 51, 52, 53, 60, 50, 51) == [52, 53, 60]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(copies, "GENERATION", 50)


def entries(index):
    return sum(len(places) for part in (index._of_prompt, index._older, index._newer) for places in part.values())


def test_the_index_has_a_bound_and_keeps_what_was_said_last(small):
    index, sizes = Copies([1, 2, 3]), []
    for start in range(1000, 3000, 20):
        text = said(index, range(start, start + 20))
        sizes.append(entries(index))
        assert index.longest_match([start, start + 1]) == (2, [(text, 2)])
        assert index.longest_match([1, 2])[0] == 2  # the prompt is never forgotten
    assert max(sizes) <= (2 * 50 + 3) * (LONGEST - SHORTEST + 1)
    assert index.longest_match([2880, 2881])[0] == 0  # what was said long ago is
    assert index.longest_match([2960, 2961])[0] == 2


def test_what_comes_again_and_again_has_a_bound_too(small):
    index = Copies()
    text = said(index, [7, 8] * 5000)
    assert max(len(places) for places in index._newer.values()) <= CROWD
    match, places = index.longest_match([7, 8])
    assert match == 2
    assert places[-1] == (text, len(text) - 2)


def test_many_runs_of_one_prompt_keep_no_more_than_a_few(small):
    """The prompt is indexed once; a conversation that goes on is indexed from where it was."""
    drafter, prompt, counts = SuffixDrafter(), list(range(100, 160)), []
    for run in range(60):
        drafter.begin(prompt, lambda done: True)
        (row,) = new_rows([1], prompt, max_tokens=1000)
        row.commit([1000 + 30 * run + n for n in range(30)], [0.0] * 30)
        drafter.propose([row], DraftBudget.of([4]))
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert max(counts[30:]) <= max(counts[5:30]) * 1.001
    assert drafter._copies._prompt == prompt
    before = drafter._copies._of_prompt[100, 101]
    drafter.begin([*prompt, 1, 2, 3], lambda done: True)
    assert drafter._copies._of_prompt[100, 101] == before
    assert len(before) == 1
    assert drafter._copies.longest_match([1, 2])[0] == 2
