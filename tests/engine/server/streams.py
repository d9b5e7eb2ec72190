"""Answers made of pieces, and a run that hears one."""

from typing import Any

from engine.contract import (
    RunFinished,
)
from tests.engine.server.fake import Answer, Exchange, FakeServer
from tests.engine.server.playing import Playing, request


def run_with(play: Playing, server: FakeServer, answer: Answer, candidates: int = 1) -> RunFinished:
    play.load(server.address)
    server.answer = answer
    return play.play(request(candidates))


def streamed(*pieces: Any, done: bool = True) -> Answer:
    """``pieces``: text, raw bytes of a stream, or chunks."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for piece in pieces:
            exchange.send(piece) if isinstance(piece, dict) else exchange.raw(piece)
        if done:
            exchange.done()

    return answer


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | more]}


END = chunk({}, "stop")
