"""Short requests that show what a server supports."""

import contextlib
import time
from dataclasses import dataclass, replace

from engine.contract import BadRequest, Request, Sampling
from engine.server.client import Client
from engine.server.dialect import Dialect, body_of, chosen_extras, untaken_basic, way_of
from engine.server.faults import NotThere, RequestRefused, ServerFailing

HOT = Sampling(temperature=1.5, top_p=1.0, max_tokens=16)  # at which no two answers to the first prompt are alike
_COLD = Sampling(temperature=0.0, top_p=1.0, max_tokens=16)
_WORDS = "Write one line of random words."
_ALIKE = "Write the word yes twenty times: yes yes yes yes yes yes"
_GAP = ("def add(a, b):\n    return ", "\n\n\nassert add(2, 3) == 5\nassert add(-1, 1) == 0\n")

# A value under which hot sampling has nothing left to choose, and one under which a dull answer must change.
_LEAVES_ONE = {
    "top_k": Sampling(1.5, 1.0, top_k=1, max_tokens=16),
    "min_p": Sampling(1.5, 1.0, min_p=1.0, max_tokens=16),
}
_CHANGES = {
    "repetition_penalty": replace(_COLD, repetition_penalty=5.0),
    "presence_penalty": replace(_COLD, presence_penalty=2.0),
    "frequency_penalty": replace(_COLD, frequency_penalty=2.0),
}


@dataclass(frozen=True)
class ProbeAnswer:
    """``first_token_s``: seconds until it began; ``gives_reason``: it came with a reason for its end.

    ``goes_on_after_its_end``: text came behind that reason.
    """

    texts: tuple[str, ...]
    first_token_s: float | None
    has_log_probs: bool
    gives_reason: bool
    goes_on_after_its_end: bool
    prompt_tokens: int | None


@dataclass(frozen=True)
class ProbeRequest:
    """What is asked: of which model, as a chat or a completion, in which dialect."""

    client: Client
    model: str
    mode: str
    dialect: Dialect

    async def ask(
        self, sampling: Sampling, seed: int, count: int = 1, prompt: str = _WORDS, suffix: str = ""
    ) -> ProbeAnswer:
        """Raises ServerFault."""
        request = Request(prompt, seed, count, self.mode, system="", sampling=sampling, suffix=suffix)
        body = body_of(request, list(request.numbers), self.model, self.dialect)
        start, first = time.monotonic(), None
        texts: dict[int, str] = {0: ""}
        log_probs, prompt_tokens = False, None
        ended: set[int] = set()
        goes_on = False
        async with contextlib.aclosing(self.client.stream(way_of(request), body)) as chunks:
            async for chunk in chunks:
                if chunk.prompt_tokens is not None:
                    prompt_tokens = chunk.prompt_tokens
                for piece in chunk.pieces:
                    if piece.tokens and first is None:
                        first = time.monotonic() - start
                    log_probs = log_probs or bool(piece.log_probs)
                    before = texts.get(piece.index, "")
                    if not (piece.whole and before):
                        goes_on = goes_on or (piece.index in ended and bool(piece.text or piece.thought))
                        texts[piece.index] = before + piece.thought + piece.text
                    if piece.finish:
                        ended.add(piece.index)
        replies = tuple(text for _, text in sorted(texts.items()))
        return ProbeAnswer(replies, first, log_probs, bool(ended), goes_on, prompt_tokens)


class FeatureCheck:
    """What one model of one server was seen to support beyond the basics; each thing is looked at when first used."""

    def __init__(self, question: ProbeRequest):
        self._question = question
        self._seen: dict[str, bool] = {}

    async def check(self, request: Request) -> None:
        """Raises BadRequest for the first thing in ``request`` that the server would ignore, and ServerFault."""
        for sampling in (request.sampling, *request.overrides.values()):
            if name := untaken_basic(sampling, self._question.dialect):
                raise BadRequest(f"This server takes no {name.replace('_', '-')} but 1; set it to 1.")
            for name in chosen_extras(sampling):
                # The two names of one penalty are sent together; it is enough that the server takes one.
                if name != "repeat_penalty" and not await self._supports(name):
                    words = name.replace("_", " " if "penalty" in name else "-")
                    raise BadRequest(f"This server ignores the {words}; switch it off, or choose another server.")
        if request.mode == "fill-in-the-middle" and not await self._supports("suffix"):
            raise BadRequest("This server does not fill gaps; choose completion mode, or a server and model that do.")

    async def _supports(self, name: str) -> bool:
        if name not in self._seen:
            self._seen[name] = await self._look(name)
        return self._seen[name]

    async def _look(self, name: str) -> bool:
        ask = self._question.ask
        if name == "suffix":
            return await self._fills_gaps()
        try:
            if name in _LEAVES_ONE:
                one = replace(_LEAVES_ONE[name], temperature=self._question.dialect.hottest)
                return (await ask(one, 1)).texts == (await ask(one, 2)).texts
            return (await ask(_CHANGES[name], 1, prompt=_ALIKE)).texts != (await ask(_COLD, 1, prompt=_ALIKE)).texts
        except RequestRefused:  # it cannot be looked at, so it does not count
            return False

    async def _fills_gaps(self) -> bool:
        """Seen by the prompt's length, which grows by the text after the gap only where the model reads it."""
        question = replace(self._question, mode="fill-in-the-middle", dialect=replace(self._question.dialect, n=False))
        cold = replace(_COLD, max_tokens=8)
        try:
            with_gap = await question.ask(cold, 1, prompt=_GAP[0], suffix=_GAP[1])
        except (RequestRefused, ServerFailing, NotThere):
            return False
        without = await question.ask(cold, 1, prompt=_GAP[0])
        if with_gap.prompt_tokens is None or without.prompt_tokens is None:
            return False
        return with_gap.prompt_tokens > without.prompt_tokens
