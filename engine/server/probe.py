"""What a server can do, found out by asking it: for the Test button, ``servers test``, and every load.

Fields that a server does not know are often ignored without a word, so nothing is believed that was not seen to work.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace
from typing import Any

from engine.server.client import Client, Timeouts
from engine.server.dialect import LARGEST, Dialect
from engine.server.faults import NotThere, RequestRefused, ServerFailing, ServerFault, UnknownProtocol
from engine.server.feature_check import HOT, ProbeRequest
from engine.session.servers import Server, Token, token_of

_SEED = 20240424
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")


@dataclass(frozen=True)
class ServerProbe:
    """What was found. Times are seconds.

    ``models``: all that the server lists; ``model``: the one that was asked. ``latency_s``: of listing them, which is
    the way there and back; ``first_token_s``: until an answer began, with the model loaded. ``seed`` is None when the
    server's answers were all alike, which shows nothing. ``chat``: it answers chats; else it only completes texts.
    ``context``: tokens that the model reads, 0 where the server does not say.
    """

    models: tuple[str, ...]
    model: str
    latency_s: float
    first_token_s: float | None
    seed: bool | None
    chat: bool
    context: int
    dialect: Dialect

    @property
    def n(self) -> bool:
        """Several candidates come from one request, each with a text of its own."""
        return self.dialect.n

    @property
    def logprobs(self) -> bool:
        """Log-probabilities come with the tokens."""
        return self.dialect.log_probs

    @property
    def lacks(self) -> tuple[str, ...]:
        """A sentence for everything that a user would miss."""
        sentences = []
        if not self.chat:
            sentences.append("It only completes texts; choose completion mode.")
        if not self.n:
            sentences.append("It writes one candidate a request, so each is asked for by itself.")
        if self.seed is None:
            sentences.append("It gives the same answer whatever the seed; it may ignore the temperature, too.")
        elif not self.seed:
            sentences.append("It ignores the seed: the same seed gives different candidates each time.")
        if fixed := [name.replace("_", "-") for name in ("temperature", "top_p") if name not in self.dialect.basics]:
            sentences.append(f"It takes no {' and no '.join(fixed)} but 1.")
        if not self.logprobs:
            sentences.append("It gives no log-probabilities, so they do not help to rank candidates.")
        if not all(self.dialect.takes(name) for name in ("top_k", "min_p")):
            sentences.append("It samples with a top-k, min-p and penalties of its own.")
        return tuple(sentences)


def probe(server: Server, model: str = "", token: Token | None = None, timeouts: Timeouts = Timeouts()) -> ServerProbe:  # noqa: B008 - it is frozen
    """Look at a server, for some seconds; blocks, so call it away from the window's thread.

    ``model`` and ``token`` stand in for the server's own model and for the token that is kept for it. Raises
    ServerFault with a sentence, and BadServer for a certificate file that is none.
    """

    async def look() -> ServerProbe:
        client = Client(server, token_of(server) if token is None else token, timeouts)
        try:
            return await look_at(client, model or server.model)
        finally:
            await client.close()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(look())


async def look_at(client: Client, model: str) -> ServerProbe:
    """As ``probe``, over a client that is there already."""
    entries, latency = await _listing(client, model)
    names = tuple(entry["id"] for entry in entries)
    if model == "default":
        if not names:
            raise NotThere(f"{client.server.host} lists no model; load one there, or name it with --model.")
        model = names[0]
    question = await _agree(ProbeRequest(client, model, "chat", LARGEST))
    dialect = question.dialect
    hot, pair = replace(HOT, temperature=dialect.hottest), 2 if dialect.n else 1
    once, again = await question.ask(hot, _SEED, pair), await question.ask(hot, _SEED, pair)
    other = await question.ask(hot, _SEED + 1)
    # Two texts that are the same were drawn with one seed, which makes them one candidate.
    n = len(once.texts) == 2 and once.texts[0] != once.texts[1]
    seed: bool | None = dialect.seed and once.texts == again.texts
    if seed and once.texts[0] == other.texts[0]:
        seed = None
    return ServerProbe(
        models=names,
        model=model,
        latency_s=latency,
        first_token_s=again.first_token_s,
        seed=seed,
        chat=question.mode == "chat",
        context=_context(next((entry for entry in entries if entry["id"] == model), {})),
        dialect=replace(
            dialect,
            n=n,
            log_probs=once.has_log_probs,
            gives_reason=once.gives_reason,
            marks_end=not once.goes_on_after_its_end,
        ),
    )


async def _listing(client: Client, model: str) -> tuple[list[dict[str, Any]], float]:
    """The models, and how long the server took to list them, in seconds.

    Where nothing is listed at the address, its version may be missing, or too much of it was copied: the client then
    stays with the address that lists some. A server that lists none at all is good enough for who names the model.
    """
    start = time.monotonic()
    try:
        return await client.models(), time.monotonic() - start
    except (NotThere, UnknownProtocol, ServerFailing, RequestRefused) as error:
        fault = error
    for server in client.server.elsewhere():
        with contextlib.suppress(ServerFault):
            start = time.monotonic()
            entries = await client.models(server.address)
            client.server = server
            return entries, time.monotonic() - start
    if model == "default":
        if isinstance(fault, NotThere):
            raise NotThere(f"{str(fault).rstrip('.')}; look at the address, or name the model with --model.") from None
        raise fault
    return [], time.monotonic() - start


async def _agree(question: ProbeRequest) -> ProbeRequest:
    """The question in the largest dialect that the server takes, as a chat if it chats."""
    try:
        return await _shorten(question)
    except (RequestRefused, ServerFailing, NotThere) as fault:
        try:
            return await _shorten(replace(question, mode="completion"))
        except ServerFault:
            raise fault from None


async def _shorten(question: ProbeRequest) -> ProbeRequest:
    """Leave out what the server complains of, until it answers."""
    while True:
        try:
            sampling = replace(HOT, temperature=question.dialect.hottest, max_tokens=1)
            await question.ask(sampling, _SEED, count=2 if question.dialect.n else 1)
            return question
        except (RequestRefused, ServerFailing) as fault:
            smaller = question.dialect.without(fault.reply)
            if smaller is None:
                raise
            question = replace(question, dialect=smaller)


def _context(entry: dict[str, Any]) -> int:
    """Tokens that a listed model reads: no field for it is OpenAI's own, so each server has another."""
    for place in (entry, entry.get("meta"), entry.get("status")):
        if isinstance(place, dict):
            for field in _CONTEXT_FIELDS:
                if isinstance(tokens := place.get(field), int) and tokens > 0:
                    return tokens
    return 0
