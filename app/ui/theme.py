"""Colours, icons and sizes. A theme is one file in resources/themes; the system's colour scheme chooses."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetrics,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

RESOURCES = Path(__file__).resolve().parent.parent.parent / "resources"


@dataclass(frozen=True)
class Colours:
    """Every colour of a theme by name; ``dark`` tells which kind it is."""

    name: str
    dark: bool
    values: dict[str, str]

    def __getitem__(self, name: str) -> QColor:
        return QColor(self.values[name])


@cache
def load_colours(name: str) -> Colours:
    groups = tomllib.loads((RESOURCES / "themes" / f"{name}.toml").read_text("utf-8"))
    values = {key: value for group in groups.values() for key, value in group.items()}
    return Colours(name, QColor(values["window"]).lightnessF() < 0.5, values)


def palette(colours: Colours) -> QPalette:
    """What Fusion paints with, where the sheet does not say otherwise."""
    result = QPalette()
    role = QPalette.ColorRole
    for target, name in (
        (role.Window, "window"),
        (role.WindowText, "text"),
        (role.Base, "base"),
        (role.AlternateBase, "window"),
        (role.Text, "text"),
        (role.Button, "raised"),
        (role.ButtonText, "text"),
        (role.BrightText, "on_accent"),
        (role.ToolTipBase, "raised"),
        (role.ToolTipText, "text"),
        (role.PlaceholderText, "muted"),
        (role.Highlight, "selection"),
        (role.HighlightedText, "text"),
        (role.Link, "accent"),
        (role.LinkVisited, "accent"),
        (role.Accent, "accent"),
        (role.Light, "raised"),
        (role.Midlight, "window"),
        (role.Mid, "border"),
        (role.Dark, "border_strong"),
        (role.Shadow, "border_strong"),
    ):
        result.setColor(target, colours[name])
    for target in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, target, colours["disabled"])
    return result


def style_sheet(colours: Colours, font: QFont) -> str:
    sheet = (RESOURCES / "themes" / "window.qss").read_text("utf-8")
    kind = "dark" if colours.dark else "light"
    words = colours.values | {
        "title": f"{max(font.pointSizeF(), 8.0) * 1.5:.1f}pt",
        "field": f"{QFontMetrics(font).height() + 4}px",
        "icon_chevron": (RESOURCES / "icons" / f"chevron-{kind}.svg").as_posix(),
        "icon_check": (RESOURCES / "icons" / f"check-{kind}.svg").as_posix(),
    }
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), sheet)


@cache
def _pixmap(name: str, colour: str, side: int, scale: float) -> QPixmap:
    svg = (RESOURCES / "icons" / f"{name}.svg").read_text("utf-8").replace("currentColor", colour)
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    pixmap = QPixmap(QSize(round(side * scale), round(side * scale)))
    pixmap.setDevicePixelRatio(scale)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    return pixmap


def monospace() -> QFont:
    """The font of code, as large as the window's."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    if (size := QGuiApplication.font().pointSizeF()) > 0:
        font.setPointSizeF(size)
    return font


def em(font: QFont | None = None) -> int:
    """Width of an M in pixels: the unit for sizes that must grow with the font."""
    return QFontMetrics(font or QGuiApplication.font()).horizontalAdvance("M")


class Theme(QObject):
    """The colours and the font size in use. ``changed`` is emitted after palette, font and sheet have been set."""

    changed = Signal()

    def __init__(self, application: QApplication):
        super().__init__(application)
        self._application = application
        self._forced = ""
        self._system_font = application.font()
        self.colours = load_colours(self._system_name())
        application.setStyle("Fusion")
        self._apply()
        self._hints = application.styleHints()
        self._hints.colorSchemeChanged.connect(self._follow_system)
        if hasattr(self._hints, "accessibility"):  # since Qt 6.10
            self._hints.accessibility().contrastPreferenceChanged.connect(self._follow_system)

    def force(self, name: str) -> None:
        """Use this theme whatever the system says; an empty name follows the system again."""
        self._forced = name
        self._follow_system()

    def use_font_size(self, points: int) -> None:
        """This size for all text, code included; 0 for the system's again."""
        font = QFont(self._system_font)
        if points:
            font.setPointSize(points)
        self._application.setFont(font)
        self._apply()
        self.changed.emit()

    def icon(self, name: str, colour: str = "text") -> QIcon:
        """An SVG of resources/icons in a colour of the theme, sharp at scales up to 3, greyed when disabled."""
        icon = QIcon()
        for scale in (1.0, 1.25, 1.5, 2.0, 3.0):
            icon.addPixmap(_pixmap(name, self.colours.values[colour], 16, scale))
            disabled = _pixmap(name, self.colours.values["disabled"], 16, scale)
            icon.addPixmap(disabled, QIcon.Mode.Disabled)
        return icon

    def pixmap(self, name: str, colour: str, side: int, scale: float) -> QPixmap:
        return _pixmap(name, self.colours.values[colour], side, scale)

    def _system_name(self) -> str:
        if self._forced:
            return self._forced
        hints = self._application.styleHints()
        if hasattr(hints, "accessibility") and (
            hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast
        ):
            return "contrast"
        scheme = hints.colorScheme()
        return "dark" if scheme == Qt.ColorScheme.Dark else "light"

    def _follow_system(self) -> None:
        name = self._system_name()
        if name != self.colours.name:
            self.colours = load_colours(name)
            self._apply()
            self.changed.emit()

    def _apply(self) -> None:
        self._application.setPalette(palette(self.colours))
        self._application.setStyleSheet(style_sheet(self.colours, self._application.font()))
