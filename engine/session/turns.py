"""What to ask after a run: a further prompt about one answer, or to correct what its tests found."""

from dataclasses import replace

from engine.contract import BadRequest, Request, Turn
from engine.selection.languages import fenced
from engine.session.candidate import Candidate
from engine.session.run import Run

_LONGEST_REASON = 2_000  # characters of a failing assert: enough for the values, too little to fill a context
_FIX = """\
The code above fails this test:

{reason}
Find the mistake and write the whole corrected code."""


def turns_until(run: Run, number: int) -> tuple[Turn, ...]:
    """All turns up to and with the answer of candidate ``number``.

    A completion is a start of code and no conversation: it goes on as a chat about its code. Raises BadRequest when
    there is no answer yet.
    """
    candidate, asked = _answered(run, number), run.request
    if asked.mode != "chat":
        return (Turn("user", "Write this code."), Turn("assistant", _code(candidate)))
    return (*asked.turns, Turn("user", asked.prompt), Turn("assistant", candidate.text))


def follow_up(run: Run, number: int, prompt: str, seed: int | None = None) -> Request:
    """Go on from the answer of candidate ``number``: what was said so far becomes earlier turns of ``prompt``.

    Numbers start at 1 again; without ``seed`` it is that of the run. Raises BadRequest when there is no answer yet or
    the prompt is empty.
    """
    turns, asked = turns_until(run, number), run.request
    return replace(
        asked,
        prompt=prompt,
        seed=asked.seed if seed is None else seed,
        mode="chat",
        suffix="",
        turns=turns,
        overrides={},
        openings={},
        first_candidate=1,
    )


def can_fix(candidate: Candidate) -> str:
    """Why there is nothing to fix, as a sentence; empty when there is."""
    if candidate.report is None:
        return "Run the tests first; the first failing assert is what the model gets to see."
    if candidate.passed:
        return "This candidate passes its tests."
    return "" if candidate.why else "The tests gave no reason that the model could act on."


def fix(run: Run, number: int, seed: int | None = None) -> Request:
    """Ask for a correction: the code and the first failing assert with its values. Raises BadRequest.

    Only the code is handed on, not the prose around it: it is what the test ran.
    """
    answer, asked = correction(run, number)
    request = follow_up(run, number, asked.text, seed)
    return replace(request, turns=(*request.turns[:-1], answer))


def correction(run: Run, number: int) -> tuple[Turn, Turn]:
    """What a correction goes on from behind the prompt: the answer's code, and the failing test. Raises BadRequest."""
    candidate = _answered(run, number)
    if sentence := can_fix(candidate):
        raise BadRequest(sentence)
    asked = _FIX.format(reason=fenced(_shortened(candidate.why)))
    return Turn("assistant", _code(candidate)), Turn("user", asked)


def _answered(run: Run, number: int) -> Candidate:
    candidate = run.candidates.get(number)
    if candidate is None or not candidate.ended or not candidate.text.strip():
        raise BadRequest(f"Candidate {number} has not answered yet; choose one that has finished.")
    return candidate


def _code(candidate: Candidate) -> str:
    return fenced(candidate.code, candidate.block.language or "python")


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + " …"
