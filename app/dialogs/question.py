"""Questions with two answers: consent to an unsealed test run, and closing while something runs."""

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.ui.words import tr
from app.widgets.controls import label


class QuestionDialog(QDialog):
    """``answered`` with ``accepted`` or ``rejected``; Escape and closing it mean the safe answer, which has focus."""

    def __init__(self, parent: QWidget, title: str, text: str, points: tuple[str, ...], yes: str, no: str):
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setModal(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 14)
        column.setSpacing(10)
        column.addWidget(label(title, role="title", wrap=True))
        self.text = label(text, wrap=True)
        column.addWidget(self.text)
        for point in points:
            column.addWidget(label(f"•  {point}", tone="warning", wrap=True))
        buttons = QDialogButtonBox()
        self.yes = buttons.addButton(yes, QDialogButtonBox.ButtonRole.AcceptRole)
        self.no = buttons.addButton(no, QDialogButtonBox.ButtonRole.RejectRole)
        for button, name in ((self.yes, yes), (self.no, no)):
            button.setAccessibleName(name)
            button.setAutoDefault(True)
        self.no.setDefault(True)
        self.no.setFocus()
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column.addSpacing(4)
        column.addWidget(buttons)
        self.setMinimumWidth(480)


def consent(parent: QWidget, sentence: str) -> QuestionDialog:
    """Tests would run model-written code without a sealed box; ``sentence`` says why."""
    return QuestionDialog(
        parent,
        tr("Run the tests without a sealed box?"),
        tr(
            "The candidates are programs that a model wrote. Unsealed, they run with your own rights: they can read "
            "and change your files and use the network. Read them first."
        ),
        (sentence,),
        tr("Run them unsealed"),
        tr("Don't run"),
    )


def same_process(parent: QWidget, sentence: str) -> QuestionDialog:
    """The test file needs to share a process with the candidate; ``sentence`` says what for."""
    return QuestionDialog(
        parent,
        tr("Run these tests in the candidate's own process?"),
        tr(
            "The box stays sealed, but a candidate that shares a process with its tests can reach into them: a pass is "
            "then worth less. Look at the code before you trust it."
        ),
        (sentence,),
        tr("Share the process"),
        tr("Don't run"),
    )


def removing(parent: QWidget, title: str, size: str) -> QuestionDialog:
    return QuestionDialog(
        parent,
        tr("Remove {title}?").format(title=title),
        tr("Its files, {size}, are deleted from this computer. It can be downloaded again.").format(size=size),
        (),
        tr("Remove"),
        tr("Keep it"),
    )


def closing(parent: QWidget, text: str) -> QuestionDialog:
    """``text`` is ``closing_text``'s, and may become another while the question stands."""
    return QuestionDialog(parent, tr("Close Bassline?"), text, (), tr("Stop and close"), tr("Keep working"))


def closing_text(doing: str, kept: bool) -> str:
    """``doing``: what goes on, a sentence; ``kept``: the history has what there is."""
    ending = tr("Closing stops it; results so far stay in the history.")
    if not kept:
        ending = tr("Closing stops it, and candidates that were not saved are lost.")
    return f"{doing} {ending}"
