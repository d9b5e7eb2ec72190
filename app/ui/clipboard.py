"""All copying to the clipboard goes through here, so that the text arrives byte for byte."""

from PySide6.QtGui import QGuiApplication

BOM = "\ufeff"


def copy_text(text: str) -> None:
    """Qt for Python takes a byte order mark at the start of a string for its own and drops it, so it gets two."""
    QGuiApplication.clipboard().setText(BOM + text if text.startswith(BOM) else text)
