"""Paints one candidate in two short lines: icon, number and state above, what else is known below."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter

from app.item_models.badge import Badge
from app.ui.theme import Theme

ICON = 15
PAD = 6
GAP = 4


def bold(font: QFont) -> QFont:
    result = QFont(font)
    result.setBold(True)
    return result


def badge_size(font: QFont, words: str, number: str) -> QSize:
    """Room for ``words`` beside ``number``."""
    metrics = QFontMetrics(font)
    text = metrics.horizontalAdvance(words) + QFontMetrics(bold(font)).horizontalAdvance(number)
    return QSize(text + ICON + 2 * GAP + 2 * PAD + 3, 2 * metrics.height() + 3 * GAP)


def paint_badge(painter: QPainter, rect: QRect, theme: Theme, font: QFont, number: int, shown: Badge) -> None:
    """``painter`` keeps its font and pen for whoever paints next."""
    painter.save()
    colours, metrics, scale = theme.colours, QFontMetrics(font), painter.device().devicePixelRatio()
    middle = Qt.AlignmentFlag.AlignVCenter
    inner = rect.adjusted(PAD, GAP, -PAD + 2, -GAP)
    line = metrics.height()
    top = QRect(inner.left(), inner.top() + 1, inner.width(), line)
    icon = theme.pixmap(shown.icon, shown.tone, ICON, scale)
    painter.drawPixmap(QPoint(top.left(), top.center().y() - ICON // 2 + 1), icon)
    left = top.left() + ICON + GAP
    painter.setFont(bold(font))
    painter.setPen(colours["text"])
    painter.drawText(QRect(left, top.top(), top.width(), line), middle, str(number))
    left += QFontMetrics(bold(font)).horizontalAdvance(str(number)) + GAP
    room = inner.right() - left + 2
    painter.setFont(font)
    painter.setPen(colours["text" if shown.tone == "text" else shown.tone])
    word = metrics.elidedText(shown.word, Qt.TextElideMode.ElideRight, room)
    painter.drawText(QRect(left, top.top(), room, line), middle, word)
    left = top.left() + ICON + GAP
    below = QRect(left, top.bottom() + GAP, inner.right() - left + 2, line)
    if shown.best:
        star = theme.pixmap("best", "accent", ICON - 2, scale)
        painter.drawPixmap(QPoint(inner.left(), below.center().y() - ICON // 2 + 1), star)
    painter.setPen(colours["accent" if shown.best else "muted"])
    painter.drawText(below, middle, metrics.elidedText(shown.note, Qt.TextElideMode.ElideRight, below.width()))
    painter.restore()
