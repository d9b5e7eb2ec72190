"""Every action once: menus, buttons, keys and docs/shortcuts.md read this table.

``python -m app.actions > docs/shortcuts.md`` writes the page. No Qt here.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Situation:
    """What the window knows that decides which actions make sense. ``current`` is the candidate in view."""

    loading: bool = False
    running: bool = False
    stopping: bool = False
    testing: bool = False
    closing: bool = False
    has_prompt: bool = False
    has_tests: bool = False
    candidates: int = 0
    finished: int = 0
    passing: int = 0
    current_has_code: bool = False

    @property
    def busy(self) -> bool:
        return self.loading or self.running or self.testing


Blocked = Callable[[Situation], str]


@dataclass(frozen=True)
class Action:
    """``blocked`` gives the sentence that says why it cannot be done now, or an empty string."""

    id: str
    text: str
    tip: str
    key: str = ""
    menu: str = ""
    icon: str = ""
    checkable: bool = False
    blocked: Blocked = lambda now: ""


def _generate(now: Situation) -> str:
    if now.closing:
        return "Bassline is closing."
    if now.loading:
        return "The model is still loading."
    if now.stopping:
        return "The last run is still stopping."
    if now.running:
        return "A run is going on; stop it first."
    if now.testing:
        return "Tests are running; wait for them or stop them first."
    return "" if now.has_prompt else "Type a prompt first."


def _stop(now: Situation) -> str:
    if now.stopping:
        return "Stopping…"
    return "" if now.busy else "Nothing is running."


def _run_tests(now: Situation) -> str:
    if now.closing:
        return "Bassline is closing."
    if not now.has_tests:
        return "Write tests in the Tests tab first."
    if now.testing:
        return "Tests are running."
    return "" if now.finished else "No candidate has finished yet."


def _needs_code(now: Situation) -> str:
    return "" if now.current_has_code else "This candidate has no text yet."


def _needs_finished(now: Situation) -> str:
    return "" if now.finished else "No candidate has finished yet."


def _needs_passing(now: Situation) -> str:
    return "" if now.passing else "No candidate has passed its tests yet."


def _needs_candidate(number: int) -> Blocked:
    return lambda now: "" if now.candidates >= number else f"There is no candidate {number}."


ACTIONS: tuple[Action, ...] = (
    Action("save", "Save as…", "Save this candidate's code to a file", "Ctrl+S", "File", "save", blocked=_needs_code),
    Action(
        "export",
        "Export run…",
        "Save all candidates, tests, results and settings to a folder",
        "Ctrl+Shift+E",
        "File",
        "export",
        blocked=_needs_finished,
    ),
    Action("quit", "Quit", "Close Bassline", "Ctrl+Q", "File"),
    Action(
        "generate",
        "Generate",
        "Generate candidates for the prompt",
        "Ctrl+Return",
        "Run",
        "generate",
        blocked=_generate,
    ),
    Action("stop", "Stop", "Stop what is running; finished candidates stay", "Ctrl+.", "Run", "stop", blocked=_stop),
    Action("run_tests", "Run tests", "Test every finished candidate", "Ctrl+T", "Run", "run-tests", blocked=_run_tests),
    Action(
        "test_as_finished",
        "Test as they finish",
        "Test each candidate as soon as it has finished",
        "Ctrl+Shift+T",
        "Run",
        checkable=True,
    ),
    Action(
        "copy",
        "Copy",
        "Copy this candidate's code, byte for byte",
        "Ctrl+Shift+C",
        "Candidate",
        "copy",
        blocked=_needs_code,
    ),
    Action(
        "next_passing",
        "Next passing candidate",
        "Go to the next candidate that passed its tests",
        "F8",
        "Candidate",
        blocked=_needs_passing,
    ),
    Action(
        "next_candidate",
        "Next candidate",
        "Go one tab to the right",
        "Ctrl+PgDown",
        "Candidate",
        blocked=_needs_candidate(2),
    ),
    Action(
        "previous_candidate",
        "Previous candidate",
        "Go one tab to the left",
        "Ctrl+PgUp",
        "Candidate",
        blocked=_needs_candidate(2),
    ),
    *(
        Action(
            f"candidate_{number}",
            f"Candidate {number}",
            f"Show candidate {number}",
            f"Ctrl+{number}",
            "Candidate",
            blocked=_needs_candidate(number),
        )
        for number in range(1, 10)
    ),
    Action("go_to_prompt", "Go to prompt", "Put the cursor into the prompt", "Alt+1", "Go"),
    Action("go_to_tests", "Go to tests", "Put the cursor into the tests", "Alt+2", "Go"),
    Action("go_to_code", "Go to code", "Show the candidate's code", "Alt+3", "Go", blocked=_needs_candidate(1)),
    Action(
        "go_to_answer",
        "Go to whole answer",
        "Show everything the model wrote",
        "Alt+4",
        "Go",
        blocked=_needs_candidate(1),
    ),
    Action(
        "go_to_test_log",
        "Go to test log",
        "Show the tests of this candidate",
        "Alt+5",
        "Go",
        blocked=_needs_candidate(1),
    ),
    Action(
        "go_to_details", "Go to details", "Show numbers of this candidate", "Alt+6", "Go", blocked=_needs_candidate(1)
    ),
)

MENUS = ("File", "Run", "Candidate", "Go")

# Keys that belong to the editors themselves, for the page only.
EDITOR_KEYS = (
    ("Tab", "In the prompt: go to the next control. In the tests: indent"),
    ("Ctrl+Tab, Ctrl+Shift+Tab", "In an editor: go to the next, previous control"),
)


def shortcuts_page() -> str:
    """docs/shortcuts.md, from the table above."""
    lines = [
        "# Keys",
        "",
        "Written by `python -m app.actions`; change `app/actions.py` instead. On macOS, Ctrl is Command.",
        "",
        "| Key | Action | What it does |",
        "|---|---|---|",
    ]
    numbered = [action for action in ACTIONS if action.id.startswith("candidate_")]
    for action in ACTIONS:
        if action is numbered[0]:
            lines.append("| Ctrl+1 … Ctrl+9 | Candidate 1 … 9 | Show that candidate |")
        if action.key and action not in numbered:
            lines.append(f"| {action.key} | {action.text.rstrip('…')} | {action.tip} |")
    lines += [f"| {key} | | {what} |" for key, what in EDITOR_KEYS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(shortcuts_page(), end="")
