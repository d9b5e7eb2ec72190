"""Files as context: text only, not too much of it, and in a fence that holds."""

from pathlib import Path

import pytest

from engine.selection.code_blocks import blocks
from engine.session.attachments import LARGEST, CannotAttach, attach, with_context


def test_a_file_in_front_of_the_prompt(tmp_path: Path) -> None:
    file = tmp_path / "shapes.py"
    file.write_text("class Square: ...\n")
    prompt = with_context("Add a circle.\n", [attach(file)])
    assert prompt == "File shapes.py:\n\n```python\nclass Square: ...\n```\n\nAdd a circle.\n"
    assert with_context("as typed ", []) == "as typed "


@pytest.mark.parametrize("text", ["```\nx\n```\n", "````", "~~~\na\n~~~", "no end", "a\r\nb\r\n", "x = '``````'\n"])
def test_no_text_ends_its_own_fence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(text.encode())
    other = tmp_path / "b.weird"
    other.write_text("second")
    found = blocks(with_context("prompt", [attach(file), attach(other)]))
    assert [block.code.removesuffix("\n") for block in found] == [text.removesuffix("\n"), "second"]
    assert [block.language for block in found] == ["markdown", ""]


def test_what_is_refused_says_why(tmp_path: Path) -> None:
    for name, data in (("a.bin", b"a\0b"), ("latin.py", "ä".encode("latin-1")), ("empty.py", b" \n")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "big.py").write_bytes(b"x" * (LARGEST + 1))
    (tmp_path / "ok.py").write_bytes(b"x" * (LARGEST - 10))
    for name, words in (
        ("a.bin", "not text in UTF-8"),
        ("latin.py", "not text in UTF-8"),
        ("empty.py", "is empty"),
        ("big.py", "has 200 kB; attach files of up to 200 kB"),
        ("gone.py", "does not exist"),
        (".", "is a folder"),
    ):
        with pytest.raises(CannotAttach, match=words):
            attach(tmp_path / name)
    first = attach(tmp_path / "ok.py")
    with pytest.raises(CannotAttach, match="attached already"):
        attach(tmp_path / "ok.py", [first])
    (tmp_path / "more.py").write_text("x" * 11)
    with pytest.raises(CannotAttach, match="room for 0 kB"):
        attach(tmp_path / "more.py", [first])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert attach(tmp_path / "a.py").text == "x = 1\n"
