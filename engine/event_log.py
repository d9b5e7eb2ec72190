"""What goes into an engine and what comes out of it, as lines of the log; text that streams is left out."""

import logging
from dataclasses import asdict

from engine.contract import (
    Add,
    Cancel,
    CandidateFinished,
    Event,
    Generate,
    Load,
    LoadFailed,
    Message,
    Ready,
    RunFinished,
    RunStarted,
)
from engine.contract.request import Request
from engine.logs import Text, address

_log = logging.getLogger(__name__)


class EventLog:
    """One for each engine. A server's own words may quote the prompt, so they count as text."""

    def __init__(self) -> None:
        self._server = False

    def message(self, message: Message) -> None:
        match message:
            case Load(choice):
                self._server = bool(choice.server)
                _log.info("load %s", ", ".join(f"{k}={address(v)}" for k, v in asdict(choice).items() if v))
            case Generate(run, request):
                _log_request(run, request)
            case Cancel(run, candidate):
                _log.info("cancel %s", run or "loading" if candidate is None else f"candidate {candidate} of {run}")
            case Add(run, count):
                _log.info("%s: %d more candidates", run, count)

    def event(self, event: Event) -> None:
        match event:
            case Ready(model, device, precision, context, draft, note):
                _log.info("ready: %s on %s in %s, context %d, draft model %s", model, device, precision, context, draft)
                if note:
                    _log.info("note on %s: %s", model, note)
            case LoadFailed(reason, _, cancelled, kind):
                _log.warning("load failed (%s): %s", "cancelled" if cancelled else kind or "other", self._shown(reason))
            case RunStarted(run, prompt_tokens, candidates, _):
                _log.info("%s started: prompt of %d tokens, %d candidates", run, prompt_tokens, len(candidates))
            case CandidateFinished():
                _log.info(
                    "%s: candidate %d %s (%s) at %.3f s: %d tokens, %d of %d drafts accepted; text: %s",
                    *(event.run, event.candidate, event.state, event.stop_reason, event.at_s),
                    *(event.tokens, event.accepted, event.proposed, Text(event.text)),
                )
            case RunFinished(run, outcome, metrics, reason, details, kind):
                numbers = {} if metrics is None else {k: v for k, v in asdict(metrics).items() if v is not None}
                words = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in numbers.items())
                _log.info("%s %s: %s", run, outcome, words or "nothing was measured")
                if reason:
                    _log.warning("%s: %s (%s); details: %s", run, self._shown(reason), kind or "other", Text(details))

    def _shown(self, reason: str) -> str | Text:
        return Text(reason) if self._server else reason


def _log_request(run: str, request: Request) -> None:
    sampling = {key: value for key, value in asdict(request.sampling).items() if value and key != "stop"}
    _log.info(
        "%s: n=%d seed=%d mode=%s goal=%s width=%d budget=%s; %s; drafter=%s policy=%s acceptance=%s; %d earlier turns",
        *(run, request.candidates, request.seed, request.mode, request.goal, request.width, request.time_budget_s),
        " ".join(f"{key}={value}" for key, value in sampling.items()),
        *(request.speculation.drafter, request.speculation.policy, request.speculation.acceptance, len(request.turns)),
    )
    _log.info("%s: prompt: %s; after the gap: %s", run, Text(request.prompt), Text(request.suffix))
