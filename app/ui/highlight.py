"""Colours for code: pygments reads the text once, Qt's layouts get the ranges. The document itself is never touched.

A QSyntaxHighlighter would come back into Python for every line and see each line without the others; streaming
sixteen candidates that way took a third of the main thread. Here the text is lexed when it has come to rest, in
slices between other work of the event loop.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QFont, QTextBlock, QTextCharFormat, QTextDocument, QTextLayout

from app.ui.theme import Colours

LARGEST = 200_000  # characters; above it code is shown plain
LONGEST_LINE = 20_000
SLICE_S = 0.008

# Most special first: the first that contains a token's type gives its colour.
_COLOURS = (
    (Token.Comment, "comment"),
    (Token.Literal.String.Doc, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Name.Function, "function"),
    (Token.Name.Class, "function"),
    (Token.Name.Decorator, "decorator"),
    (Token.Name.Builtin, "builtin"),
    (Token.Name.Exception, "builtin"),
)


@dataclass(frozen=True)
class Span:
    """``length`` UTF-16 units from ``start`` on, in the theme's colour ``colour``."""

    start: int
    length: int
    colour: str


def too_large(text: str) -> str:
    """Why this text is shown plain, as a sentence; empty when it need not be."""
    if len(text) > LARGEST:
        return f"Shown without colours: the text has more than {LARGEST:,} characters. Copy and save give all of it."
    if _has_long_line(text):
        return f"Lines above {LONGEST_LINE:,} characters are shown shortened. Copy and save give all of it."
    return ""


def spans(text: str, language: str) -> Iterator[Span]:
    """What to colour in ``text``, in order; nothing when the language is unknown. Positions are Qt's: UTF-16."""
    lexer, at = _lexer(language), 0
    if lexer is None:
        return
    for _, kind, piece in lexer.get_tokens_unprocessed(text):
        length = len(piece) if piece.isascii() else len(piece.encode("utf-16-le", "surrogatepass")) // 2
        colour = _colour_of(kind)
        if colour:
            yield Span(at, length, colour)
        at += length


@cache
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def displayed(text: str) -> str:
    """``text`` as the editors show it: line ends become newlines, invisible control characters visible signs.

    Only for the eye. One character stays one character, but for CRLF.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _UNSEEN.sub(_sign, text)
    return _LONG.sub(lambda match: match[0][: LONGEST_LINE - 1] + "…", text) if _has_long_line(text) else text


_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2029\ufeff\ud800-\udfff\ufdd0\ufdd1]")
_LONG = re.compile(rf"[^\n]{{{LONGEST_LINE},}}")


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x2029:
        return "\n"
    if code == 0x7F:
        return "\u2421"
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _has_long_line(text: str) -> bool:
    return len(text) > LONGEST_LINE and _LONG.search(text) is not None


@cache
def _colour_of(kind: _TokenType) -> str:
    for family, colour in _COLOURS:
        if kind in family:
            return colour
    return ""


class Colouring(QObject):
    """Colours one document. ``colour`` starts over; it works in slices, so the window stays alive."""

    def __init__(self, document: QTextDocument, colours: Colours):
        super().__init__(document)
        self._document = document
        self._formats: dict[str, QTextCharFormat] = {}
        self._work: Iterator[None] = iter(())
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._slice)
        self.painting = False  # the document says "changed" when formats change; listeners look here
        self.use(colours)

    def use(self, colours: Colours) -> None:
        for name in {name for _, name in _COLOURS}:
            self._formats[name] = QTextCharFormat()
            self._formats[name].setForeground(colours[name])
        self._formats["comment"].setFontItalic(True)
        self._formats["function"].setFontWeight(QFont.Weight.DemiBold)

    def colour(self, text: str, language: str) -> None:
        """Colour the document, whose text is ``text``. The first slice is done at once: small texts never flash."""
        self._work = self._paint(text, language)
        self._timer.start()
        self._slice()

    def stop(self) -> None:
        self._timer.stop()
        self._work = iter(())

    @property
    def busy(self) -> bool:
        return self._timer.isActive()

    def _slice(self) -> None:
        until = time.perf_counter() + SLICE_S
        self.painting = True
        try:
            for _ in self._work:
                if time.perf_counter() > until:
                    return
            self._timer.stop()
        finally:
            self.painting = False

    def _paint(self, text: str, language: str) -> Iterator[None]:
        """Give each line its formats; pauses after every 64 lines."""
        block, ranges, since = self._document.firstBlock(), list[QTextLayout.FormatRange](), 0
        for span in spans(text, language):
            start, end = span.start, span.start + span.length
            while start < end and block.isValid():
                past = block.position() + block.length()
                if start >= past:
                    block, ranges = self._settle(block, ranges), []
                    if block.blockNumber() % 64 == 0:
                        since = self._show(since, block.position())
                        yield
                    continue
                ranges.append(self._range(start - block.position(), min(end, past) - start, span.colour))
                start = min(end, past)
        while block.isValid():
            block, ranges = self._settle(block, ranges), []
        self._show(since, self._document.characterCount())
        yield

    def _settle(self, block: QTextBlock, ranges: list[QTextLayout.FormatRange]) -> QTextBlock:
        layout = block.layout()
        if ranges or layout.formats():
            layout.setFormats(ranges)
        return block.next()

    def _show(self, start: int, end: int) -> int:
        self._document.markContentsDirty(start, end - start)
        return end

    def _range(self, start: int, length: int, colour: str) -> QTextLayout.FormatRange:
        result = QTextLayout.FormatRange()
        result.start, result.length, result.format = start, length, self._formats[colour]
        return result
