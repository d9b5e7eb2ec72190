"""What can be done now, and the sentence that says why not."""

import pytest

from app.ui import action_state
from app.ui.action_state import ActionState


@pytest.mark.parametrize(("candidates", "blocked"), [(0, True), (1, True), (2, False), (3, False)])
def test_two_candidates_can_be_compared(candidates: int, blocked: bool) -> None:
    assert bool(action_state.needs_two(ActionState(candidates=candidates))) == blocked


def test_what_needs_code_says_whether_there_is_no_text_or_no_code() -> None:
    assert action_state.needs_code(ActionState()) == "This candidate has no text yet."
    assert action_state.needs_code(ActionState(current_has_text=True)) == "This answer has no code."
    assert action_state.needs_code(ActionState(current_has_text=True, current_has_code=True)) == ""


def test_an_answer_in_words_can_be_asked_about() -> None:
    assert action_state.follow_up(ActionState(current_ended=True, current_has_text=True)) == ""
    assert action_state.follow_up(ActionState(current_ended=True)) == "This candidate has not finished yet."


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_candidate_can_be_gone_to_if_it_is_there(number: int) -> None:
    assert action_state.needs_candidate(number)(ActionState(candidates=number)) == ""
    assert (
        action_state.needs_candidate(number)(ActionState(candidates=number - 1)) == f"There is no candidate {number}."
    )
