"""What reaches a terminal obeys nobody but us."""

import pytest

from app.cli.output import one_line, shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain é 😀\ta\n", "plain é 😀\ta\n"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("right\u202eleft", "right\\u202eleft"),
        ("no\u200bwidth", "no\\u200bwidth"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_characters_that_command_are_written_as_escapes(text: str, seen: str) -> None:
    assert shown(text) == seen


@pytest.mark.parametrize(("text", "line"), [("abcde", "abcde"), ("abcdef", "abcd…"), (" \n ab \n c", "ab")])
def test_a_line_that_fits_is_whole(text: str, line: str) -> None:
    assert one_line(text, 5) == line
