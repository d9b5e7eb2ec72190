"""Every action once: menus, buttons, keys, the palette and docs/shortcuts.md read this table.

``python -m app.ui.actions > docs/shortcuts.md`` writes the page. No Qt here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.ui import action_state
from app.ui.action_state import ActionState, Blocked, needs_candidate

__all__ = ["ACTIONS", "EDITOR_KEYS", "MENUS", "Action", "ActionState", "shortcuts_page"]


@dataclass(frozen=True)
class Action:
    """``blocked`` gives the sentence that says why it cannot be done now, or an empty string.

    ``tip_now`` gives another tip than usual where the action does something else now, or an empty string.
    ``checkable``: it is on or off, and ``on`` in a new window. ``separated``: a line in the menu before it.
    ``remembered``: on or off as it was when the window was closed.
    """

    id: str
    text: str
    tip: str
    key: str = ""
    icon: str = ""
    blocked: Blocked = action_state.never
    tip_now: Callable[[ActionState], str] = action_state.never
    checkable: bool = False
    remembered: bool = False
    on: bool = False
    separated: bool = False
    menu: str = ""


def _menu(name: str, *actions: Action) -> Iterable[Action]:
    return (Action(**(vars(action) | {"menu": name})) for action in actions)


ACTIONS: tuple[Action, ...] = (
    *_menu(
        "File",
        Action("attach", "Attach files…", "Send files to the model together with the prompt", "Ctrl+Shift+A", "attach"),
        Action(
            "save",
            "Save as…",
            "Save this candidate's code to a file",
            "Ctrl+S",
            "save",
            action_state.needs_code,
            separated=True,
        ),
        Action(
            "save_with_tests",
            "Save with tests…",
            "Save this candidate's code and the tests to a folder",
            "Ctrl+Shift+S",
            blocked=action_state.needs_code,
        ),
        Action(
            "export",
            "Export run…",
            "Save all candidates, tests, results and settings to a folder",
            "Ctrl+Shift+E",
            "export",
            action_state.needs_finished,
        ),
        Action(
            "export_json",
            "Export run as JSON…",
            "Save the whole run to one file",
            blocked=action_state.needs_finished,
        ),
        Action(
            "open_in_editor",
            "Open in editor",
            "Open a copy of this candidate's code in your editor",
            "Ctrl+E",
            "editor",
            action_state.needs_code,
            separated=True,
        ),
        Action("models", "Models…", "Download, inspect and remove models", "Ctrl+M", separated=True),
        Action("servers", "Servers…", "Add servers that run models, and test them"),
        Action("settings", "Settings…", "Theme, font, editor, history and defaults for new windows", "Ctrl+,"),
        Action("quit", "Quit", "Close Bassline", "Ctrl+Q", separated=True),
    ),
    *_menu(
        "Run",
        Action(
            "generate",
            "Generate",
            "Generate candidates for the prompt",
            "Ctrl+Return",
            "generate",
            action_state.generate,
        ),
        Action(
            "generate_more",
            "Generate more",
            "Add as many candidates to this run as the Candidates box says",
            "Ctrl+Shift+Return",
            "more",
            action_state.generate_more,
        ),
        Action(
            "stop",
            "Stop",
            "Stop what is running; finished candidates stay",
            "Ctrl+.",
            "stop",
            action_state.stop,
            action_state.stops_loading,
        ),
        Action(
            "cancel_candidate",
            "Stop this candidate",
            "Stop the candidate in view; the others go on",
            "Ctrl+Shift+.",
            "stop",
            action_state.cancel_candidate,
        ),
        Action(
            "run_tests",
            "Run tests",
            "Test all candidates of this run: finished ones now, the others as they finish",
            "Ctrl+T",
            "run-tests",
            action_state.run_tests,
            separated=True,
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
            "ask",
            "Ask which is right",
            "Call the candidates with the same inputs and ask where they differ; to the question, if there is one",
            "F9",
            blocked=action_state.compare_behaviour,
            separated=True,
        ),
        Action(
            "suggest_tests",
            "Suggest tests",
            "Have the model write tests, and tick those that are right; to the list, if it is open",
            "Shift+F9",
            blocked=action_state.suggest_tests,
        ),
        Action(
            "ask_by_itself",
            "Ask where they differ",
            "After a run without tests, compare what the candidates do and ask which result is right",
            checkable=True,
            remembered=True,
            on=True,
        ),
        Action(
            "until_pass",
            "Until one passes",
            "Keep trying further candidates, repairs and larger local models until one passes its tests",
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
            separated=True,
        ),
    ),
    *_menu(
        "Candidate",
        Action(
            "copy", "Copy", "Copy this candidate's code, byte for byte", "Ctrl+Shift+C", "copy", action_state.needs_code
        ),
        Action(
            "fix_it",
            "Fix it",
            "Ask for new candidates that repair this one; the failing test is included",
            "Ctrl+Shift+F",
            "fix",
            action_state.fix_it,
            separated=True,
        ),
        Action(
            "follow_up",
            "Follow up",
            "Continue from this candidate: the next prompt is a follow-up to it",
            "Ctrl+Shift+U",
            "follow-up",
            action_state.follow_up,
        ),
        Action(
            "best",
            "Best candidate",
            "Go to the best candidate so far",
            "Shift+F8",
            "best",
            action_state.needs_best,
            separated=True,
        ),
        Action(
            "next_passing",
            "Next passing candidate",
            "Go to the next candidate that passed its tests",
            "F8",
            blocked=action_state.needs_verdict,
        ),
        Action(
            "next_candidate",
            "Next candidate",
            "Go to the candidate after this one",
            "Ctrl+PgDown",
            "",
            action_state.needs_two,
        ),
        Action(
            "previous_candidate",
            "Previous candidate",
            "Go to the candidate before this one",
            "Ctrl+PgUp",
            blocked=action_state.needs_two,
        ),
        *(
            Action(
                f"candidate_{number}",
                f"Candidate {number}",
                f"Show candidate {number}",
                f"Ctrl+{number}",
                blocked=needs_candidate(number),
                separated=number == 1,
            )
            for number in range(1, 10)
        ),
    ),
    *_menu(
        "View",
        Action("go_to_prompt", "Go to prompt", "Move the cursor to the prompt", "Alt+1"),
        Action("go_to_tests", "Go to tests", "Move the cursor to the tests", "Alt+2"),
        Action(
            "go_to_code", "Go to code", "Show the candidate's code", "Alt+3", "", needs_candidate(1), separated=True
        ),
        Action(
            "go_to_answer", "Go to whole answer", "Show everything the model wrote", "Alt+4", "", needs_candidate(1)
        ),
        Action("go_to_test_log", "Go to test log", "Show the tests of this candidate", "Alt+5", "", needs_candidate(1)),
        Action("go_to_details", "Go to details", "Show this candidate's figures", "Alt+6", "", needs_candidate(1)),
        Action("compare", "Compare", "Show what differs between two candidates", "Ctrl+D", "", action_state.needs_two),
        Action("tile", "Tile", "Show two or four candidates at once", "Ctrl+Shift+D", "", action_state.needs_two),
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
        Action("shortcuts", "Keyboard shortcuts", "All actions and their keys", "F1"),
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
        "# Keyboard shortcuts",
        "",
        "Written by `python -m app.ui.actions`; change `app/ui/actions.py` instead. On macOS, Ctrl is Command.",
        "",
        "| Key | Action | What it does |",
        "|---|---|---|",
        *(f"| {key} | {text} | {what} |" for key, text, what in keys()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(shortcuts_page(), end="")
