"""The table of n-grams: counted, kept, looked up from the longest context down, and used where nothing repeats."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.ngrams import PROMPTS, reliability, table
from engine.sampler.budget import DraftBudget
from engine.sampler.drafters.confidence import CopyKind
from engine.sampler.drafters.ngrams import CLASSES, EMPTY, LONGEST, TABLES, NgramKind, Ngrams, table_for
from engine.sampler.drafters.suffix import SuffixDrafter
from tests.engine.sampler.running import new_rows

PROMPT = [1, 2, 3, 4]
ANSWERS = [(PROMPT, [[10, 11, 12, 13, 14], [10, 11, 12, 13, 15], [10, 11, 20, 13, 16], [30, 11, 12, 13, 14]])]


class Vocabulary:
    """A tokenizer of ``size`` tokens whose texts are numbers, but for those in ``other``."""

    def __init__(self, size=100, other=()):
        self.size, self.other = size, other

    def __len__(self):
        return self.size

    def convert_ids_to_tokens(self, ids):
        return ["other" if id in self.other else f"t{id}" for id in ids]


@pytest.fixture
def ngrams():
    right = np.linspace(0.05, 0.95, LONGEST * CLASSES, dtype=np.float32).reshape(LONGEST, CLASSES)
    probes = np.array([0, 50, 99])
    return Ngrams(*table(ANSWERS), right, probes, np.array(Vocabulary().convert_ids_to_tokens(probes.tolist())))


def test_the_longest_known_context_decides(ngrams):
    assert ngrams.next([10, 11])[0] == 12  # twice 12, once 20
    assert ngrams.next([99, 98, 11])[0] == 12  # nothing is known of 98: 11 alone
    token, habit = ngrams.next([11, 12, 13])
    assert (token, habit.context) == (14, 2)  # 12, 13 says it as surely as 11, 12, 13
    assert ngrams.next([77]) is None
    assert ngrams.next([]) is None


def test_what_was_seen_once_is_no_habit(ngrams):
    assert ngrams.next([20]) is None
    assert ngrams.next([10, 11, 20]) is None


def test_a_context_that_says_what_its_end_says_is_left_out(ngrams):
    contexts = [tuple(id for id in row if id != EMPTY) for row in ngrams.contexts.tolist()]
    assert (12,) in contexts
    assert (11, 12) not in contexts  # 13 follows, three times of three, as after 12
    assert (10, 11, 12) in contexts  # twice of two: less sure


def test_more_evidence_is_a_higher_class():
    def share(times):
        _, _, shares = table([(PROMPT, [[5, 6]] * times)])
        return shares.max()

    assert share(2) < share(5) < share(50) == CLASSES - 1


def test_reliability_is_judged_by_what_was_not_counted():
    always = [(PROMPT, [[10, 11]] * 50)]
    never = [(PROMPT, [[10, 12]] * 50)]
    assert reliability([(always, always)]).max() > 0.95
    assert reliability([(always, never)])[LONGEST - 1].min() < 0.3


def test_a_table_survives_its_file(ngrams, tmp_path: Path):
    ngrams.save(tmp_path / "t.npz")
    again = Ngrams.read(tmp_path / "t.npz")
    assert again.next([11, 12, 13]) == ngrams.next([11, 12, 13])
    assert again.fits(Vocabulary())


def test_a_table_is_for_one_vocabulary(ngrams):
    assert ngrams.fits(Vocabulary(200))
    assert not ngrams.fits(Vocabulary(99))
    assert not ngrams.fits(Vocabulary(other={50}))


def test_the_drafter_falls_back_on_habits_and_prefers_what_is_surer(ngrams):
    drafter = SuffixDrafter(ngrams)
    drafter.begin([7, 8, 9], lambda done: True)
    (row,) = new_rows([1], [7, 8, 9])
    row.commit([10, 11], [0.0, 0.0])
    proposals = drafter.propose([row], DraftBudget.of([4]))
    assert proposals.tokens[0][:3] == [12, 13, 14]
    kinds = drafter._guesses[1].kinds
    assert all(isinstance(kind, NgramKind) for kind in kinds)
    assert proposals.survival[0] == sorted(proposals.survival[0], reverse=True)

    said = [10, 11, 40, 41, 42, 43] * 3
    drafter.begin(said, lambda done: True)
    (row,) = new_rows([1], said)
    row.commit([10, 11], [0.0, 0.0])
    tokens = drafter.propose([row], DraftBudget.of([4])).tokens[0]
    assert tokens == [40, 41, 42, 43]  # said three times in this very prompt
    assert all(isinstance(kind, CopyKind) for kind in drafter._guesses[1].kinds)


def test_the_shipped_tables_can_be_read_and_know_whom_they_are_for():
    paths = sorted(TABLES.glob("*.npz"))
    assert paths
    for path in paths:
        shipped = Ngrams.read(path)
        assert shipped.right.shape == (LONGEST, CLASSES)
        assert 0 < shipped.right.min() <= shipped.right.max() < 1
        assert path.stat().st_size < 2_000_000
        assert not shipped.fits(Vocabulary())


@pytest.mark.real_model
def test_a_model_of_another_family_gets_no_table(loaded_small_model):
    assert table_for(loaded_small_model.tokenizer) is None


def test_no_prompt_was_counted_that_a_benchmark_measures():
    import tomllib

    measured = tomllib.loads(PROMPTS.with_name("prompts.toml").read_text(encoding="utf-8"))
    names = {word.split("(")[0] for prompt in measured.values() for word in prompt.split() if "(" in word}
    counted = PROMPTS.read_text(encoding="utf-8")
    assert names
    assert not [name for name in names if f"{name}(" in counted]


def test_what_was_said_is_copied_from_when_the_conversation_goes_on():
    drafter = SuffixDrafter()
    drafter.begin([1, 2, 3], lambda done: True)
    (row,) = new_rows([1], [1, 2, 3])
    row.commit([20, 21, 22, 23, 24], [0.0] * 5)
    drafter.propose([row], DraftBudget.of([4]))

    def guessed(prompt):
        drafter.begin(prompt, lambda done: True)
        (row,) = new_rows([1], prompt)
        row.commit([20, 21], [0.0, 0.0])
        return drafter.propose([row], DraftBudget.of([3])).tokens[0]

    assert guessed([1, 2, 3, 9]) == [22, 23, 24]  # a follow-up
    assert guessed([1, 2, 3, 9]) == [22, 23, 24]  # the same prompt again: more candidates
    assert guessed([7, 8]) == []  # another matter


def test_guesses_end_at_the_first_that_is_too_unlikely(ngrams):
    said = [10, 11, 40, 41, 42, 43] * 3

    def guesses(least: float) -> tuple[list[int], list[float]]:
        drafter = SuffixDrafter(ngrams)
        drafter.begin(said, lambda done: True)
        (row,) = new_rows([1], said)
        row.commit([10, 11], [0.0, 0.0])
        proposals = drafter.propose([row], DraftBudget.of([4], least))
        assert proposals.survival is not None
        return proposals.tokens[0], proposals.survival[0] or []

    tokens, chances = guesses(0.0)
    assert len(tokens) == 4
    assert guesses(chances[1]) == (tokens[:2], chances[:2])
    assert guesses(1.0) == (tokens[:1], chances[:1])  # one is always made, and judged
