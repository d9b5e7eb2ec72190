"""The comparison of a run's candidates by what they do: which of them, and what was said about them before."""

from collections.abc import Sequence

from engine.contract.states import FINISHED
from engine.elicitation.elicitation import Elicitation, Solution
from engine.elicitation.inputs import Input
from engine.elicitation.suggestions import Suggestion
from engine.session.run import Run


def solutions(run: Run) -> dict[int, Solution]:
    """Of the candidates that were written to their end."""
    return {
        number: Solution(c.code, c.mean_logprob, c.text)
        for number, c in sorted(run.candidates.items())
        if c.state in FINISHED and c.code.strip() and c.block.maybe_python
    }


def elicitation_of(
    run: Run, tests: str, extra: Sequence[Input] = (), suggested: Sequence[Suggestion] = ()
) -> Elicitation:
    """With the answers that were given about the run before. Raises NothingToAsk."""
    return Elicitation(run.request.prompt, tests, solutions(run), extra, suggested, run.comparison.answered)
