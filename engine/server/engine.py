"""A server as engine: hears messages, lives on one thread, and on it in one event loop."""

import asyncio
import traceback

from engine.contract import (
    Add,
    BadRequest,
    BasslineError,
    Cancel,
    Close,
    Closed,
    Emit,
    Generate,
    Load,
    LoadFailed,
    Loading,
    Message,
    ModelChoice,
    Ready,
    RunFinished,
)
from engine.server.client import Client, Patience
from engine.server.generation import AS_SERVED, Generation
from engine.server.post import Post
from engine.server.probe import Probe, look_at
from engine.server.question import Heeded, Question
from engine.session.servers import find, token_of


class ServerEngine:
    """See ``engine.contract.Engine``.

    ``ModelChoice.server`` is an address or the name of a kept server; its token comes from the keyring or the
    environment and goes nowhere but into the request's header. A load asks the server what it heeds (see ``probe``).
    """

    def __init__(self, patience: Patience = Patience()):  # noqa: B008 - it is frozen
        self._patience = patience
        self._post = Post()
        self._client: Client | None = None
        self._question: Question | None = None
        self._heeded: Heeded | None = None

    def submit(self, message: Message) -> None:
        self._post.put(message)

    def run(self, emit: Emit) -> None:
        # Not asyncio.run: the window's own kind of loop belongs to its thread alone.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            self._post.wake(runner.get_loop())
            while not isinstance(message := self._post.next(), Close):
                if isinstance(message, Load):
                    runner.run(self._load(message.choice, emit))
                else:
                    runner.run(self._generate(message, emit))
            runner.run(self._hang_up())
        emit(Closed())

    async def _load(self, choice: ModelChoice, emit: Emit) -> None:
        await self._hang_up()
        work = asyncio.ensure_future(self._connect(choice, emit))

        def stop(_: Cancel | Add) -> None:
            work.cancel()

        heed = asyncio.ensure_future(self._post.heed("", stop))
        try:
            emit(await work)
        except asyncio.CancelledError:
            emit(LoadFailed("Connecting was stopped.", cancelled=True))
        except BasslineError as error:
            emit(LoadFailed(str(error)))
        except Exception as error:
            reason = f"Connecting to the server failed: {type(error).__name__}. The details are worth a report."
            emit(LoadFailed(reason, traceback.format_exc()))
        finally:
            heed.cancel()
        if self._question is None:
            await self._hang_up()

    async def _connect(self, choice: ModelChoice, emit: Emit) -> Ready:
        server = find(choice.server)
        _refuse_what_is_the_servers_own(choice)
        if choice.offline and not server.is_here:
            raise BadRequest(f"{server.host} is elsewhere, and you asked to stay offline; drop one of the two.")
        emit(Loading("connect", unit="steps"))
        token = token_of(server)
        self._client = client = Client(server, token, self._patience)
        emit(Loading("check", unit="steps"))
        found = await look_at(client, server.model if choice.model == "default" else choice.model)
        question = Question(client, found.model, "chat" if found.chat else "completion", found.dialect)
        self._heeded, self._question = Heeded(question), question
        exposed = bool(token) and not server.is_encrypted and not server.is_here
        return Ready(found.model, server.host, AS_SERVED, found.context, note=_note(found, exposed))

    async def _hang_up(self) -> None:
        client, self._client, self._question, self._heeded = self._client, None, None, None
        if client is not None:
            await client.close()

    async def _generate(self, message: Generate, emit: Emit) -> None:
        if self._question is None or self._heeded is None:
            emit(RunFinished(message.run, "refused", reason="No server is connected; choose one first."))
            return
        await Generation(message, self._question, self._heeded, self._post, emit).execute()


def _refuse_what_is_the_servers_own(choice: ModelChoice) -> None:
    if choice.draft:
        raise BadRequest("A server brings its own draft model; name it where you start the server.")
    if choice.precision != "auto" or choice.device != "auto":
        raise BadRequest("Precision and device are the server's own matter; leave both on auto.")


def _note(found: Probe, exposed: bool) -> str:
    """What a person should know before the first run."""
    warning = ["The token travels unencrypted; use https://."] if exposed else []
    return " ".join([*warning, *found.lacks, "How it guesses ahead is its own matter."])
