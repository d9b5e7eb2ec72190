"""Every action once: menus, buttons, keys, the palette and docs/shortcuts.md read this table.

``python -m app.actions > docs/shortcuts.md`` writes the page. No Qt here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app import situation
from app.situation import Blocked, Situation, needs_candidate

__all__ = ["ACTIONS", "EDITOR_KEYS", "MENUS", "Action", "Situation", "shortcuts_page"]


@dataclass(frozen=True)
class Action:
    """``blocked`` gives the sentence that says why it cannot be done now, or an empty string.

    ``tip_now`` gives another tip than usual where the action does something else now, or an empty string.
    ``checkable``: it is on or off, and ``on`` in a new window. ``apart``: a line in the menu before it. ``remembered``:
    on or off as it was when the window was closed.
    """

    id: str
    text: str
    tip: str
    key: str = ""
    icon: str = ""
    blocked: Blocked = situation.never
    tip_now: Callable[[Situation], str] = situation.never
    checkable: bool = False
    remembered: bool = False
    on: bool = False
    apart: bool = False
    menu: str = ""


def _menu(name: str, *actions: Action) -> Iterable[Action]:
    return (Action(**(vars(action) | {"menu": name})) for action in actions)


ACTIONS: tuple[Action, ...] = (
    *_menu(
        "File",
        Action("attach", "Attach files…", "Give files to the model together with the prompt", "Ctrl+Shift+A", "attach"),
        Action(
            "save",
            "Save as…",
            "Save this candidate's code to a file",
            "Ctrl+S",
            "save",
            situation.needs_code,
            apart=True,
        ),
        Action(
            "save_with_tests",
            "Save with tests…",
            "Save this candidate's code and the tests to a folder",
            "Ctrl+Shift+S",
            blocked=situation.needs_code,
        ),
        Action(
            "export",
            "Export run…",
            "Save all candidates, tests, results and settings to a folder",
            "Ctrl+Shift+E",
            "export",
            situation.needs_finished,
        ),
        Action(
            "export_json",
            "Export run as JSON…",
            "Save the whole run to one file",
            blocked=situation.needs_finished,
        ),
        Action(
            "open_in_editor",
            "Open in editor",
            "Open a copy of this candidate's code in your editor",
            "Ctrl+E",
            "editor",
            situation.needs_code,
            apart=True,
        ),
        Action("models", "Models…", "Fetch, look after and remove models", "Ctrl+M", apart=True),
        Action("servers", "Servers…", "Name servers that can do the work, and test them"),
        Action("settings", "Settings…", "Theme, font, editor, history and what a window starts with", "Ctrl+,"),
        Action("quit", "Quit", "Close Bassline", "Ctrl+Q", apart=True),
    ),
    *_menu(
        "Run",
        Action(
            "generate", "Generate", "Generate candidates for the prompt", "Ctrl+Return", "generate", situation.generate
        ),
        Action(
            "generate_more",
            "Generate more",
            "Add as many candidates to this run as the Candidates box says",
            "Ctrl+Shift+Return",
            "more",
            situation.generate_more,
        ),
        Action(
            "stop",
            "Stop",
            "Stop what is running; finished candidates stay",
            "Ctrl+.",
            "stop",
            situation.stop,
            situation.stops_loading,
        ),
        Action(
            "cancel_candidate",
            "Stop this candidate",
            "Stop the candidate in view; the others go on",
            "Ctrl+Shift+.",
            "stop",
            situation.cancel_candidate,
        ),
        Action(
            "run_tests",
            "Run tests",
            "Test all candidates of this run: those that have finished now, the others as they do",
            "Ctrl+T",
            "run-tests",
            situation.run_tests,
            apart=True,
        ),
        Action(
            "test_as_finished",
            "Test as they finish",
            "Test each candidate as soon as it has finished",
            "Ctrl+Shift+T",
            checkable=True,
            remembered=True,
            on=True,
        ),
        Action(
            "stop_at_first_pass",
            "Stop at first pass",
            "Test as they finish, and stop the run when a candidate passes",
            "Ctrl+Shift+L",
            checkable=True,
            remembered=True,
        ),
        Action(
            "until_pass",
            "Until one passes",
            "Go on with further candidates, repairs and larger models that are here until one passes its tests",
            "Ctrl+Shift+G",
            checkable=True,
            remembered=True,
        ),
        Action(
            "advanced",
            "Advanced",
            "Show more settings: draft model, penalties, draft length",
            "Ctrl+Shift+X",
            checkable=True,
            apart=True,
        ),
    ),
    *_menu(
        "Candidate",
        Action(
            "copy", "Copy", "Copy this candidate's code, byte for byte", "Ctrl+Shift+C", "copy", situation.needs_code
        ),
        Action(
            "fix_it",
            "Fix it",
            "Ask for new candidates that repair this one: the failing test goes along",
            "Ctrl+Shift+F",
            "fix",
            situation.fix_it,
            apart=True,
        ),
        Action(
            "follow_up",
            "Follow up",
            "Go on from this candidate: the next prompt is said after it",
            "Ctrl+Shift+U",
            "follow-up",
            situation.follow_up,
        ),
        Action(
            "best",
            "Best candidate",
            "Go to the best candidate so far",
            "Shift+F8",
            "best",
            situation.needs_best,
            apart=True,
        ),
        Action(
            "next_passing",
            "Next passing candidate",
            "Go to the next candidate that passed its tests",
            "F8",
            blocked=situation.needs_verdict,
        ),
        Action(
            "next_candidate",
            "Next candidate",
            "Go to the candidate after this one",
            "Ctrl+PgDown",
            "",
            situation.needs_two,
        ),
        Action(
            "previous_candidate",
            "Previous candidate",
            "Go to the candidate before this one",
            "Ctrl+PgUp",
            blocked=situation.needs_two,
        ),
        *(
            Action(
                f"candidate_{number}",
                f"Candidate {number}",
                f"Show candidate {number}",
                f"Ctrl+{number}",
                blocked=needs_candidate(number),
                apart=number == 1,
            )
            for number in range(1, 10)
        ),
    ),
    *_menu(
        "View",
        Action("go_to_prompt", "Go to prompt", "Put the cursor into the prompt", "Alt+1"),
        Action("go_to_tests", "Go to tests", "Put the cursor into the tests", "Alt+2"),
        Action("go_to_code", "Go to code", "Show the candidate's code", "Alt+3", "", needs_candidate(1), apart=True),
        Action(
            "go_to_answer", "Go to whole answer", "Show everything the model wrote", "Alt+4", "", needs_candidate(1)
        ),
        Action("go_to_test_log", "Go to test log", "Show the tests of this candidate", "Alt+5", "", needs_candidate(1)),
        Action("go_to_details", "Go to details", "Show numbers of this candidate", "Alt+6", "", needs_candidate(1)),
        Action("compare", "Compare", "Show what differs between two candidates", "Ctrl+D", "", situation.needs_two),
        Action("tile", "Tile", "Show two or four candidates at once", "Ctrl+Shift+D", "", situation.needs_two),
    ),
    *_menu(
        "View",
        Action(
            "history",
            "History",
            "Search earlier runs, open or delete them",
            "Ctrl+H",
            checkable=True,
            remembered=True,
        ),
    ),
    *_menu(
        "Help",
        Action("palette", "Command palette…", "Find any action by its name", "Ctrl+Shift+P"),
        Action("shortcuts", "Keys", "All actions and their keys", "F1"),
    ),
)

MENUS = tuple(dict.fromkeys(action.menu for action in ACTIONS))

# Keys that belong to the editors themselves, for the page only.
EDITOR_KEYS = (
    ("Tab", "In the prompt: go to the next control. In the tests: indent"),
    ("Ctrl+Tab, Ctrl+Shift+Tab", "In an editor: go to the next, previous control"),
)


def keys() -> list[tuple[str, str, str]]:
    """Key, action and what it does; the numbered candidates are one row."""
    rows = []
    for action in ACTIONS:
        if action.id == "candidate_1":
            rows.append(("Ctrl+1 … Ctrl+9", "Candidate 1 … 9", "Show that candidate"))
        elif action.key and not action.id.startswith("candidate_"):
            rows.append((action.key, action.text.rstrip("…"), action.tip))
    return rows + [(key, "", what) for key, what in EDITOR_KEYS]


def shortcuts_page() -> str:
    """docs/shortcuts.md, from the table above."""
    lines = [
        "# Keys",
        "",
        "Written by `python -m app.actions`; change `app/actions.py` instead. On macOS, Ctrl is Command.",
        "",
        "| Key | Action | What it does |",
        "|---|---|---|",
        *(f"| {key} | {text} | {what} |" for key, text, what in keys()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(shortcuts_page(), end="")
