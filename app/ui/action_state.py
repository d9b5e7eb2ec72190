"""What the window knows that decides which actions make sense, and the sentences that say why one does not. No Qt."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ActionState:
    """``current`` is the candidate in view; ``preloading``: models are being loaded that nobody waits for;
    ``loads_other``: what is being loaded is not what is chosen now. ``suggesting``: the model writes tests.

    ``past``: the run in view is one from the history, to be read only. ``may_run_code``: the settings allow tests.
    """

    loading: bool = False
    loads_other: bool = False
    preloading: bool = False
    running: bool = False
    stopping: bool = False
    testing: bool = False
    suggesting: bool = False
    closing: bool = False
    past: bool = False
    may_run_code: bool = True
    has_prompt: bool = False
    has_tests: bool = False
    has_model: bool = False
    candidates: int = 0
    finished: int = 0
    passing: int = 0
    has_best: bool = False
    current_runs: bool = False
    current_ended: bool = False
    current_failed: bool = False
    current_has_text: bool = False
    current_has_code: bool = False

    @property
    def busy(self) -> bool:
        """Something that a user asked for is going on."""
        return self.loading or self.running or self.testing


Blocked = Callable[[ActionState], str]


def never(now: ActionState) -> str:
    return ""


def generate(now: ActionState) -> str:
    if now.closing:
        return "Bassline is closing."
    if now.loading and not now.loads_other:
        return "The model is still loading."
    if now.stopping:
        return "The last run is still stopping."
    if now.running:
        return "A run is going on; stop it first."
    if now.testing:
        return "Tests are running; wait for them or stop them first."
    return "" if now.has_prompt else "Type a prompt first."


_PAST = "This run is from the history; choose Use again first."


def generate_more(now: ActionState) -> str:
    if now.past:
        return _PAST
    if not now.candidates:
        return "Generate some candidates first."
    if now.closing:
        return "Bassline is closing."
    if now.loading:
        return "The model is still loading."
    return "The run is still stopping." if now.stopping else ""


def stop(now: ActionState) -> str:
    if now.stopping:
        return "Stopping…"
    return "" if now.busy or now.preloading or now.suggesting else "Nothing is running."


def stops_loading(now: ActionState) -> str:
    only_loads = (now.loading or now.preloading) and not now.running and not now.testing
    return "Stop loading the model" if only_loads else ""


def cancel_candidate(now: ActionState) -> str:
    return "" if now.current_runs else "This candidate is not running."


def run_tests(now: ActionState) -> str:
    if now.closing:
        return "Bassline is closing."
    if now.past:
        return _PAST
    if not now.may_run_code:
        return "Running code is switched off in the settings."
    if not now.has_tests:
        return "Write tests in the Tests tab first."
    if now.testing:
        return "Tests are running."
    return "" if now.running else needs_finished(now)  # during a run it means all that are to come, too


def fix_it(now: ActionState) -> str:
    if not now.current_failed:
        return "This candidate has not failed a test."
    return follow_up(now)


def follow_up(now: ActionState) -> str:
    if not now.current_ended or not now.current_has_text:
        return "This candidate has not finished yet."
    if now.closing:
        return "Bassline is closing."
    return "A run is going on; stop it first." if now.running or now.loading else ""


def needs_code(now: ActionState) -> str:
    if not now.current_has_text:
        return "This candidate has no text yet."
    return "" if now.current_has_code else "This answer has no code."


def needs_finished(now: ActionState) -> str:
    return "" if now.finished else "No candidate has finished yet."


def needs_verdict(now: ActionState) -> str:
    return "" if now.candidates else "There are no candidates yet."


def needs_best(now: ActionState) -> str:
    return "" if now.has_best else "No candidate has finished yet."


def compare_behaviour(now: ActionState) -> str:
    if now.past:
        return _PAST
    if not now.may_run_code:
        return "Running code is switched off in the settings."
    if now.running:
        return "The run is still going on."
    return "" if now.finished >= 2 else "There are no two finished candidates yet."


def suggest_tests(now: ActionState) -> str:
    if now.closing:
        return "Bassline is closing."
    if now.past:
        return _PAST
    if not now.may_run_code:
        return "Running code is switched off in the settings."
    if now.running:
        return "The run is still going on."
    if now.loading or now.preloading:
        return "The model is still loading."
    if now.suggesting:
        return "The model is writing tests already."
    if not now.finished:
        return "Generate some candidates first."
    return "" if now.has_model else "No model is loaded; Generate loads the one that is chosen."


def needs_two(now: ActionState) -> str:
    return "" if now.candidates >= 2 else "This needs two candidates."


def needs_candidate(number: int) -> Blocked:
    return lambda now: "" if now.candidates >= number else f"There is no candidate {number}."
