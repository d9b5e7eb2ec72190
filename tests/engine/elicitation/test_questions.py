"""Who behaves alike, and which input is asked about next."""

import math

import pytest

from engine.elicitation.groups import Observed, agreement, behaviours, replies, weights
from engine.elicitation.inputs import EDGE, NEAR, TESTS, Input
from engine.elicitation.outcomes import Outcome
from engine.elicitation.questions import next_question
from tests.engine.elicitation.conftest import raised, value

INPUTS = [Input.of_call("f", [str(n)], NEAR) for n in range(4)]


def seen(*outcomes: object, logprob: float | None = None, doubt: int = 0) -> Observed:
    made = tuple(o if isinstance(o, Outcome) else value(o) for o in outcomes)
    return Observed(made, logprob, doubt)


def test_candidates_weigh_what_their_tokens_were_worth_and_less_where_the_prompt_contradicts_them() -> None:
    shares = weights(
        {1: seen(1, logprob=-0.1), 2: seen(1, logprob=-1.1), 3: seen(1), 4: seen(1, logprob=-0.1, doubt=1)}
    )
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[1] / shares[2] == pytest.approx(math.e)
    assert shares[2] < shares[3] < shares[1]
    assert shares[4] == pytest.approx(shares[1] / 4)


def test_on_one_input_the_largest_group_comes_first() -> None:
    found = replies(
        {1: seen(5), 2: seen([1]), 3: seen([1]), 4: seen(raised("ValueError")), 5: seen(raised("TypeError"))}, 0
    )
    assert [reply.members for reply in found] == [(2, 3), (4, 5), (1,)]


def test_behaviour_is_the_same_only_where_all_inputs_say_so() -> None:
    candidates = {1: seen(1, 2), 2: seen(1.0, 2), 3: seen(1, 3), 4: seen(1, Outcome("skipped")), 5: seen(2, 2)}
    assert behaviours(candidates) == [(1, 2, 4), (3,), (5,)]


def test_what_could_not_be_compared_makes_nobody_alike() -> None:
    hidden = Outcome("value", ["opaque", "Node", "<Node>", []])
    unstable = value(3, unstable=True)
    candidates = {1: seen(hidden), 2: seen(hidden), 3: seen(unstable), 4: seen(unstable), 5: seen(Outcome("skipped"))}
    assert behaviours(candidates) == [(1,), (2,), (3,), (4,), (5,)]


def test_an_object_beside_comparable_results_decides_nothing_alone() -> None:
    hidden = Outcome("value", ["opaque", "Node", "<Node>", []])
    assert behaviours({1: seen(1, hidden), 2: seen(1, hidden), 3: seen(2, hidden)}) == [(1, 2), (3,)]


def test_hanging_alike_is_no_like_behaviour_by_itself() -> None:
    ends = Outcome("timeout")
    assert behaviours({1: seen(1, ends), 2: seen(1, ends), 3: seen(1, 7)}) == [(1, 2), (3,)]
    assert behaviours({1: seen(ends), 2: seen(ends)}) == [(1,), (2,)]


def test_agreement_is_the_mean_share_of_those_that_do_the_same() -> None:
    found = agreement({1: seen(1, 1), 2: seen(1, 2), 3: seen(1, 2), 4: seen(9, raised("TypeError"))})
    assert found == pytest.approx({1: 0.5, 2: 0.625, 3: 0.625, 4: 0.125})


def test_the_input_that_splits_best_is_asked_about_and_never_twice() -> None:
    candidates = {1: seen(0, 1, 1, 5), 2: seen(0, 1, 1, 5), 3: seen(0, 1, 2, 5), 4: seen(0, 2, 3, 5)}
    first = next_question(candidates, INPUTS, set())
    assert first is not None
    assert first.at == 2
    assert [(choice.text, choice.reply.members) for choice in first.choices] == [
        ("1", (1, 2)),
        ("2", (3,)),
        ("3", (4,)),
    ]
    second = next_question(candidates, INPUTS, {2})
    assert second is not None
    assert second.at == 1
    assert next_question(candidates, INPUTS, {1, 2}) is None


def test_the_question_says_who_says_what() -> None:
    given = Input.of_call("merge", ["[[1, 4], [4, 5]]"])
    candidates = {n: seen([[1, 5]]) for n in range(1, 6)} | {n: seen([[1, 4], [4, 5]]) for n in (6, 7)}
    found = next_question(candidates | {8: seen(raised("TypeError"))}, [given], set())
    assert found is not None
    assert found.sentence == (
        "merge([[1, 4], [4, 5]]): 5 say [[1, 5]], 2 say [[1, 4], [4, 5]], 1 say an error (TypeError). Which is right?"
    )


def test_candidates_that_do_not_end_are_counted_and_cannot_be_chosen() -> None:
    found = next_question({1: seen(1), 2: seen(Outcome("timeout")), 3: seen(Outcome("timeout"))}, INPUTS[:1], set())
    assert found is not None
    assert [choice.text for choice in found.choices] == ["1"]
    assert "2 do not end in time" in found.sentence


def test_different_errors_are_one_answer() -> None:
    found = next_question({1: seen(raised("ValueError")), 2: seen(raised("TypeError")), 3: seen(4)}, INPUTS[:1], set())
    assert found is not None
    assert found.choices[0].text == "an error (TypeError, ValueError)"


@pytest.mark.parametrize(
    "outcomes",
    [
        [value(1), value(1)],
        [value(1), value(1.0)],
        [raised("ValueError"), raised("TypeError")],
        [Outcome("timeout"), Outcome("killed")],
        [value(1, unstable=True), value(2, unstable=True)],
        [Outcome("value", ["opaque", "A", "x", []]), Outcome("value", ["opaque", "A", "y", []])],
        [Outcome("value", ["iterator", False, 1]), Outcome("value", ["iterator", False, 2])],
        [Outcome("value", ["large", "list"]), Outcome("value", ["large", "list"])],
        [Outcome("missing"), raised("TypeError")],
        [Outcome("timeout"), raised("RecursionError")],
    ],
)
def test_where_nothing_could_be_answered_nothing_is_asked(outcomes: list[Outcome]) -> None:
    candidates = {number: seen(outcome) for number, outcome in enumerate(outcomes)}
    assert next_question(candidates, INPUTS[:1], set()) is None


def test_an_input_that_somebody_wrote_goes_before_a_made_up_extreme() -> None:
    inputs = [Input.of_call("f", ["0"], EDGE), Input.of_call("f", ["1"], TESTS)]
    found = next_question({1: seen(1, 1), 2: seen(2, 2)}, inputs, set())
    assert found is not None
    assert found.at == 1


def test_a_difference_of_results_goes_before_one_of_mishaps() -> None:
    found = next_question({1: seen(1, 1), 2: seen(raised("TypeError"), 2)}, INPUTS[:2], set())
    assert found is not None
    assert found.at == 1


def test_a_short_question_goes_before_a_long_one() -> None:
    inputs = [Input.of_call("f", [repr("x" * 250)], NEAR), Input.of_call("f", ["1"], NEAR)]
    found = next_question({1: seen(1, 1), 2: seen(2, 2)}, inputs, set())
    assert found is not None
    assert found.at == 1
    long = next_question({1: seen(1), 2: seen("y" * 900)}, inputs[:1], set())
    assert long is not None
    assert len(long.sentence) < 400
