"""What differs between two texts."""

from hypothesis import given
from hypothesis import strategies as st

from app.item_models.difference import ADDED, CHANGED, FILLER, REMOVED, SAME, changed_ranges, difference

ONE = "def f(x):\n    y = x + 1\n    return y\n"
OTHER = "def f(x):\n    y = x + 2\n    print(y)\n    return y\n"


def marks(lines) -> list[str]:
    return [line.mark for line in lines]


def test_lines_stand_side_by_side_with_fillers() -> None:
    found = difference(ONE, OTHER)
    assert marks(found.left) == [SAME, CHANGED, FILLER, SAME, SAME]
    assert marks(found.right) == [SAME, CHANGED, ADDED, SAME, SAME]
    assert found.differing == 2
    assert found.left[1].text[slice(*found.left[1].parts[0])] == "1"
    assert found.right[1].text[slice(*found.right[1].parts[0])] == "2"


def test_unified_has_removed_lines_before_added_ones() -> None:
    found = difference(ONE, OTHER)
    assert [f"{line.mark}{line.text}" for line in found.unified] == [
        " def f(x):",
        "-    y = x + 1",
        "+    y = x + 2",
        "+    print(y)",
        "     return y",
        " ",
    ]


def test_lines_that_share_little_are_one_removed_and_one_added() -> None:
    found = difference("alpha = 1", "return None")
    assert marks(found.left) == [REMOVED]
    assert marks(found.right) == [ADDED]


def test_equal_texts_have_nothing_to_show() -> None:
    found = difference(ONE, ONE)
    assert found.differing == 0
    assert changed_ranges(found.left) == []


def test_a_stretch_begins_where_lines_begin_to_differ() -> None:
    found = difference("a\nb\nc\nd\ne", "a\nX\nY\nd\nZ")
    assert changed_ranges(found.left) == [1, 4]


texts = st.lists(st.sampled_from(["a", "b", "  c", "", "def f():"]), max_size=12).map("\n".join)


@given(texts, texts)
def test_nothing_is_lost_and_rows_agree(left: str, right: str) -> None:
    found = difference(left, right)
    assert len(found.left) == len(found.right)
    assert "\n".join(line.text for line in found.left if line.mark != FILLER) == left
    assert "\n".join(line.text for line in found.right if line.mark != FILLER) == right
    assert [line.text for line in found.unified if line.mark != ADDED] == left.split("\n")
    assert [line.text for line in found.unified if line.mark != REMOVED] == right.split("\n")
    same = [line.text for line in found.left if line.mark == SAME]
    assert same == [line.text for line in found.right if line.mark == SAME]


def test_a_stretch_may_begin_in_the_first_row() -> None:
    found = difference("first\nsame\nlast", "xyz 1\nsame\n9 uvw")
    assert changed_ranges(found.left) == [0, 2]


def test_where_something_was_only_added_nothing_is_marked_on_the_other_side() -> None:
    found = difference("abcdef", "abcXdef")
    assert (found.left[0].parts, found.right[0].parts) == ((), ((3, 4),))
