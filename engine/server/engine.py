"""A server as the engine: takes messages and runs on one thread, in one event loop."""

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
    RunOutcome,
)
from engine.server.client import Client, Timeouts
from engine.server.feature_check import FeatureCheck, ProbeRequest
from engine.server.generation import AS_SERVED, ServerRun
from engine.server.mailbox import AsyncMailbox
from engine.server.probe import ServerProbe, look_at
from engine.session.servers import find, token_of


class ServerEngine:
    """See ``engine.contract.Engine``.

    ``ModelChoice.server`` is an address or the name of a kept server; its token comes from the keyring or the
    environment and goes nowhere but into the request's header. A load asks the server what it supports (see ``probe``).
    """

    def __init__(self, timeouts: Timeouts = Timeouts()):  # noqa: B008 - it is frozen
        self._timeouts = timeouts
        self._post = AsyncMailbox()
        self._client: Client | None = None
        self._question: ProbeRequest | None = None
        self._features: FeatureCheck | None = None

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

        listening = asyncio.ensure_future(self._post.listen("", stop))
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
            listening.cancel()
        if self._question is None:
            await self._hang_up()

    async def _connect(self, choice: ModelChoice, emit: Emit) -> Ready:
        server = find(choice.server)
        _refuse_what_is_the_servers_own(choice)
        if choice.offline and not server.is_here:
            raise BadRequest(f"{server.host} is elsewhere, and you asked to stay offline; drop one of the two.")
        emit(Loading("connect", unit="steps"))
        token = token_of(server)
        self._client = client = Client(server, token, self._timeouts)
        emit(Loading("check", unit="steps"))
        found = await look_at(client, server.model if choice.model == "default" else choice.model)
        question = ProbeRequest(client, found.model, "chat" if found.chat else "completion", found.dialect)
        self._features, self._question = FeatureCheck(question), question
        exposed = bool(token) and not server.is_encrypted and not server.is_here
        return Ready(found.model, server.host, AS_SERVED, found.context, note=_note(found, exposed))

    async def _hang_up(self) -> None:
        client, self._client, self._question, self._features = self._client, None, None, None
        if client is not None:
            await client.close()

    async def _generate(self, message: Generate, emit: Emit) -> None:
        if self._question is None or self._features is None:
            emit(RunFinished(message.run, RunOutcome.REFUSED, reason="No server is connected; choose one first."))
            return
        await ServerRun(message, self._question, self._features, self._post, emit).execute()


def _refuse_what_is_the_servers_own(choice: ModelChoice) -> None:
    if choice.draft:
        raise BadRequest("A server brings its own draft model; name it where you start the server.")
    if choice.precision != "auto" or choice.device != "auto":
        raise BadRequest("Precision and device are the server's own matter; leave both on auto.")


def _note(found: ServerProbe, exposed: bool) -> str:
    """What a user should know before the first run."""
    warning = ["The token travels unencrypted; use https://."] if exposed else []
    return " ".join([*warning, *found.lacks, "How it guesses ahead is its own matter."])
