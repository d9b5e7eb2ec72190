"""One candidate's code, or its whole answer, as it comes and when it has come."""

from functools import lru_cache

from PySide6.QtWidgets import QWidget

from app.ui.theme import Theme
from app.ui.words import tr
from app.widgets.code_view import CodeView
from engine.selection.code_blocks import CodeBlock, parse_python
from engine.selection.growing import GrowingCode
from engine.session.candidate import Candidate

_NO_CODE = "This answer has no code. What the model wrote is in the Answer tab."


@lru_cache(maxsize=256)
def _untagged(block: CodeBlock) -> str:
    """The language of a block without a tag: Python, this program's default, unless it is prose."""
    return "python" if block.fenced or parse_python(block.code) else ""


def language_of(block: CodeBlock) -> str:
    return block.language or _untagged(block)


class AnswerView(CodeView):
    """Shows an answer's code, or with ``whole`` all of it; while it streams, as far as can be told."""

    def __init__(self, theme: Theme, name: str, whole: bool = False, parent: QWidget | None = None):
        super().__init__(theme, name, parent)
        self._whole = whole
        self._shows: Candidate | None = None
        self._growing = GrowingCode()
        self._begins = self._streamed = 0  # characters of the answer: where what is shown begins, and how far it goes

    @property
    def is_empty(self) -> bool:
        return not self._streamed

    def follows(self, candidate: Candidate | None) -> bool:
        return candidate is self._shows

    def forget(self) -> None:
        """Whatever is followed next starts on an empty page."""
        self._begin(None)

    def follow(self, candidate: Candidate) -> None:
        """Bring the view up to date; another candidate than last time starts over."""
        if candidate is not self._shows:
            self._begin(candidate)
        if not candidate.ended:
            self._go_on(candidate.text)
        elif self._whole:
            self.settle(candidate.text, "markdown")
            self._streamed = len(candidate.text)
        else:
            block = candidate.block
            self.setPlaceholderText(tr(_NO_CODE) if candidate.has_no_code else "")
            self.settle(block.code, language_of(block))
            self._streamed = len(candidate.text)

    def _begin(self, candidate: Candidate | None) -> None:
        self.clear_all()
        self.setPlaceholderText("")
        self._shows, self._growing = candidate, GrowingCode()
        self._begins = self._streamed = 0

    def _go_on(self, text: str) -> None:
        begins, ends = (0, len(text)) if self._whole else self._growing.span(text)
        if begins != self._begins:  # what was shown so far stands before the code
            self.clear_all()
            self._begins = self._streamed = begins
        self.stream(text[self._streamed : ends])
        self._streamed = max(self._streamed, ends)
