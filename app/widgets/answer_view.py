"""One candidate's code, or its whole answer, as it comes and when it has come."""

from functools import lru_cache

from PySide6.QtWidgets import QWidget

from app.theme import Theme
from app.widgets.code_view import CodeView
from engine.selection.code_blocks import CodeBlock, parse_python
from engine.session.run import Candidate


@lru_cache(maxsize=256)
def _untagged(block: CodeBlock) -> str:
    """The language of a block without a tag: Python, this program's default, unless it is prose."""
    return "python" if block.fenced or parse_python(block.code) else ""


def language_of(block: CodeBlock) -> str:
    return block.language or _untagged(block)


class AnswerView(CodeView):
    """Shows the whole answer while it streams; then its code block, or with ``whole`` still all of it."""

    def __init__(self, theme: Theme, name: str, whole: bool = False, parent: QWidget | None = None):
        super().__init__(theme, name, parent)
        self._whole = whole
        self._shows: Candidate | None = None
        self._streamed = 0  # characters of the answer

    @property
    def is_empty(self) -> bool:
        return not self._streamed

    def follows(self, candidate: Candidate | None) -> bool:
        return candidate is self._shows

    def forget(self) -> None:
        """Whatever is followed next starts on an empty page."""
        self._shows, self._streamed = None, 0
        self.clear_all()

    def follow(self, candidate: Candidate) -> None:
        """Bring the view up to date; another candidate than last time starts anew."""
        if candidate is not self._shows:
            self.clear_all()
            self._shows, self._streamed = candidate, 0
        if not candidate.ended:
            text = candidate.text
            self.stream(text[self._streamed :])
            self._streamed = len(text)
        elif self._whole:
            self.settle(candidate.text, "markdown")
            self._streamed = len(candidate.text)
        else:
            block = candidate.block
            self.settle(block.code, language_of(block))
            self._streamed = len(candidate.text)
