"""Every text that a user reads goes through ``tr``, so that a translation is one file and no change of code."""

from PySide6.QtCore import QCoreApplication


def tr(text: str) -> str:
    """``text`` in the user's language. What varies is put in afterwards: ``tr("{n} pass").format(n=3)``."""
    return QCoreApplication.translate("Bassline", text)
