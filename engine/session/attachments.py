"""Files that a prompt refers to: read once, checked, and written into the prompt as code blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.contract import BasslineError
from engine.selection.languages import fenced, tag_of

LARGEST = 200_000  # bytes, all files of a prompt together: some 50,000 tokens, more than most contexts hold


class CannotAttach(BasslineError):
    """The file cannot be context; the text says why and what to do."""


@dataclass(frozen=True)
class Attachment:
    """One file as it was when it was attached. ``name`` is what the model is told."""

    path: Path
    name: str
    text: str

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.text.encode("utf-8", "surrogatepass"))

    @property
    def block(self) -> str:
        """The file as the model sees it: its name, then its text in a fence that no line of it can close."""
        return f"File {self.name}:\n\n{fenced(self.text, tag_of(self.path))}"


def attach(path: Path, others: Sequence[Attachment] = ()) -> Attachment:
    """Read ``path`` as context beside ``others``.

    Raises CannotAttach: no file, attached already, not text in UTF-8, empty, or too large together with the others.
    """
    path = path.expanduser().absolute()
    if any(other.path == path for other in others):
        raise CannotAttach(f"{path.name} is attached already; remove it first to read it again.")
    room = LARGEST - sum(other.size for other in others)
    data = _read(path, room)
    if len(data) > room:
        raise CannotAttach(_too_large(path, room))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise CannotAttach(f"{path.name} is not text in UTF-8; attach source files only.")
    if not text.strip():
        raise CannotAttach(f"{path.name} is empty.")
    return Attachment(path, path.name, text)


def with_context(prompt: str, attachments: Sequence[Attachment]) -> str:
    """The prompt as the model gets it: the files first, then what is asked, as it was typed."""
    return "\n".join([*(attachment.block for attachment in attachments), prompt])


def _read(path: Path, room: int) -> bytes:
    """At most one byte more than there is room for."""
    try:
        if path.is_dir():
            raise CannotAttach(f"{path.name} is a folder; attach single files.")
        if not path.is_file():
            raise CannotAttach(f"{path} does not exist, or is no ordinary file.")
        with path.open("rb") as file:
            return file.read(room + 1)
    except OSError as error:
        raise CannotAttach(f"{path.name} cannot be read: {error.strerror or error}.") from None


def _too_large(path: Path, room: int) -> str:
    size = _kilobytes(path.stat().st_size)
    if room == LARGEST:
        return f"{path.name} has {size} kB; attach files of up to {_kilobytes(LARGEST)} kB, or paste the part you need."
    return f"{path.name} has {size} kB, and beside the other files there is room for {_kilobytes(max(room, 0))} kB."


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f}"
