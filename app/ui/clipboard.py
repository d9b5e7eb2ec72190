"""The one way to the clipboard: what is copied is what was given, to the byte."""

from PySide6.QtGui import QGuiApplication

BOM = "\ufeff"


def copy_text(text: str) -> None:
    """Qt for Python takes a byte order mark at the start of a string for its own and drops it, so it gets two."""
    QGuiApplication.clipboard().setText(BOM + text if text.startswith(BOM) else text)
