"""Tries a ``DeviceModel`` on the model's own shapes: every kind of line, against the model as transformers ships it.

This is also when every kernel is compiled and every graph of the first room captured, so that no run waits for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from engine.contract import Sampling
from engine.models.causal_lm import CausalLM
from engine.models.room import TOKENS_PER_ROW
from engine.sampler.acceptance import AcceptanceRule, Coupled, Rejection, VerifyLine
from engine.sampler.device_model import DeviceModel
from engine.sampler.ragged_model import RaggedModel
from engine.sampler.sampling import Distributions, SamplingPoint, distributions
from engine.sampler.self_check import TOLERANCE
from engine.sampler.verdict import DeviceVerifier, HostVerifier, Verdict, cuts_of_places
from kernels.philox import DRAFT

PROMPT = 300  # tokens, or fewer where the model reads fewer: enough for every size of tile
JUDGED = 3  # positions of a row whose verdict is compared: two drafts, and the token behind them
SAMPLING = Sampling(temperature=0.8, top_p=0.95)
SLACK = 2  # times the self-check's tolerance: the worst of hundreds of positions, where that looks at two
SCORE = 1e-3  # nats by which the log-probability of a token may differ
Piece = Callable[[], object]


class WrongNumbers(Exception):
    """A line, or a verdict, differs from the model's own; the text says how."""


@dataclass(frozen=True)
class Trial:
    """Of one model. The truth is computed once, however many rungs are tried.

    ``is_draft``: it will only be asked for each row's last logits.
    """

    module: CausalLM
    vocabulary: int
    precision: str
    is_draft: bool = False

    @torch.inference_mode()
    def run(
        self, model: DeviceModel, check: Callable[[RaggedModel], None], progress: Callable[[int, int], None]
    ) -> None:
        """Raises what ``check`` raises, WrongNumbers, or whatever the device says.

        ``progress``: pieces that are done, of how many.
        """
        rows, prompt = model.cache.room.rows, len(self._prompt)
        pieces: list[Piece] = [
            lambda: check(model),
            lambda: model.prefill(self._prompt),
            lambda: model.reserve(rows, TOKENS_PER_ROW, prompt, last_only=self.is_draft),
            *(partial(self._compare_line, model, counts) for counts in _lines(rows)),
        ]
        if model.has_kernels:
            pieces += self._verdicts(model, rows)
        try:
            for done, piece in enumerate(pieces):
                progress(done, len(pieces))
                piece()
        finally:
            model.clear()
        progress(len(pieces), len(pieces))

    @cached_property
    def _prompt(self) -> list[int]:
        config = self.module.config.get_text_config()
        context = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or PROMPT * 2
        return self._random(max(1, min(PROMPT, int(context) - TOKENS_PER_ROW)), seed=0)

    def _row(self, number: int) -> list[int]:
        return self._random(TOKENS_PER_ROW, seed=number + 1)

    def _random(self, count: int, seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(self.vocabulary // 2, self.vocabulary, (count,), generator=generator).tolist()

    def _compare_line(self, model: DeviceModel, counts: Sequence[int]) -> None:
        """Row b sends its first ``counts[b]`` tokens."""
        tokens = [self._row(number)[:count] for number, count in enumerate(counts)]
        got = model.forward(tokens, [model.prompt_length] * len(counts), last_only=self.is_draft).logits.float()
        truth = [self._truth(model, row)[:count] for row, count in enumerate(counts)]
        want = torch.cat([logits[-1:] if self.is_draft else logits for logits in truth]).float()
        worst = float(((got - want).std(-1) / want.std(-1)).max())
        if not worst <= SLACK * TOLERANCE[self.precision]:
            raise WrongNumbers(f"it gave wrong numbers there (off by {worst:.2g} of their spread)")

    def _truth(self, model: DeviceModel, row: int) -> Tensor:
        """Stock logits ``[TOKENS_PER_ROW, V]`` of a row's tokens, as the model gives them."""
        if row not in self._known:
            keep = {"logits_to_keep": TOKENS_PER_ROW} if model.can_choose_logits else {}
            ids = torch.tensor([[*self._prompt, *self._row(row)]], device=model.device)
            with model.stock_attention():
                out = self.module(input_ids=ids, use_cache=False, **keep)
            self._known[row] = out.logits[0, -TOKENS_PER_ROW:, : self.vocabulary].clone()
        return self._known[row]

    @cached_property
    def _known(self) -> dict[int, Tensor]:
        return {}

    def _verdicts(self, model: DeviceModel, rows: int) -> Iterator[Piece]:
        """The kernels of both rules, for drafts that were guessed and for drawn ones, and the one that draws them."""

        def logits() -> Tensor:
            return torch.cat([self._truth(model, row)[:JUDGED] for row in range(rows)])

        for rule, is_drawn in ((Coupled(), False), (Rejection(), False), (Rejection(), True)):
            yield lambda rule=rule, is_drawn=is_drawn: compare_verdicts(logits(), rule, is_drawn)  # type: ignore[misc]
        yield lambda: compare_drawn(logits())


def _lines(rows: int) -> list[list[int]]:
    """Tokens of each row: one alone, one each, an uneven line, and the longest that is captured."""
    return [[1], [1] * rows, [(3 * row) % 5 + 1 for row in range(rows)], [TOKENS_PER_ROW] * rows]


def compare_verdicts(logits: Tensor, rule: AcceptanceRule, is_drawn: bool) -> None:
    """Rows of ``ALWAYS_GUESSED`` positions, judged by the kernels and by plain PyTorch. Raises WrongNumbers."""
    at = torch.arange(len(logits), device=logits.device)
    row, offset = at // JUDGED, at % JUDGED
    guessed = offset < JUDGED - 1
    drafts, q = logits.argmax(-1), None
    if is_drawn:
        drawn = distributions(0.7 * logits.float(), SAMPLING)
        drafts, q = (
            drawn.ids[at, drawn.log_probs.argmax(-1)],
            Distributions(drawn.ids[guessed], drawn.log_probs[guessed]),
        )
    counter = (torch.full_like(at, 7), row + 1, offset + PROMPT)
    line = VerifyLine(drafts.masked_fill(~guessed, -1), row, counter, [SamplingPoint(SAMPLING)] * len(logits))
    rows = len(logits) // JUDGED
    got, want = (verifier.verify(logits, line, rows, q, rule).wait() for verifier in (DeviceVerifier(), HostVerifier()))
    # Of eight rows one may lie so near an edge that the last bit of a sum decides.
    if sum(not _agree(got, want, row) for row in range(rows)) > rows // 8:
        raise WrongNumbers(f"verdicts by the {rule.name} rule came out wrong there")


def _agree(got: Verdict, want: Verdict, row: int) -> bool:
    count = want.accepted[row]
    if (got.accepted[row], got.tokens[row]) != (count, want.tokens[row]):
        return False
    committed = range(JUDGED * row, JUDGED * row + count + 1)
    return all(abs(got.scores[at] - want.scores[at]) <= SCORE for at in committed)


def compare_drawn(logits: Tensor) -> None:
    """Tokens as a draft model draws them, by the kernel and by plain PyTorch. Raises WrongNumbers."""
    from kernels.acceptance.triton import Counter, draw

    at = torch.arange(len(logits), device=logits.device)
    counter, cuts = (
        Counter(at + 7, at + 1, at + PROMPT),
        cuts_of_places([SamplingPoint(SAMPLING)] * len(at), logits.device),
    )
    got = draw(logits, cuts, counter, DRAFT).tokens
    want = Rejection().draw_draft(distributions(logits, SAMPLING), counter)
    if int((got != want).sum()) > len(at) // 8:
        raise WrongNumbers("drafts came out wrong there")
