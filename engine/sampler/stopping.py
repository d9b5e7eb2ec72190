"""What ends a candidate: an end token, an end in the text, or the length limit; see ``Row``."""

from dataclasses import dataclass

from engine.contract import Request


@dataclass(frozen=True)
class Limits:
    """What ends a candidate. ``eos_ids``: every id that ends a turn; ``max_tokens``: the end token counts as one.

    ``stop`` and ``code_stop`` are those of ``Sampling``; ``before``: the text that a completion goes on from;
    ``thinking``: the prompt ends with an opened thought.
    """

    eos_ids: frozenset[int]
    max_tokens: int
    stop: tuple[str, ...] = ()
    code_stop: str = ""
    before: str = ""
    thinking: bool = False

    @classmethod
    def of(
        cls, request: Request, candidate: int, eos_ids: frozenset[int], room: int, thinking: bool = False
    ) -> "Limits":
        """Of one candidate of a request; ``room``: tokens that the context leaves."""
        sampling = request.sampling_of(candidate)
        before = request.prompt if request.mode == "completion" else ""
        return cls(eos_ids, min(sampling.max_tokens, room), sampling.stop, sampling.code_stop, before, thinking)
