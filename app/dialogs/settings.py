"""The user's settings. A change takes effect at once; an invalid value is not applied, and the dialog says why."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.theme import em
from app.ui.words import tr
from app.widgets.controls import label
from app.widgets.fields import NumberField, choice_box, choose, number_field
from engine.contract import BadRequest, BasslineError
from engine.contract.parameters import CANDIDATES, MAX_TOKENS, TEMPERATURE, TOP_P
from engine.session.settings import FONT_SIZES, Settings

_WIDE = 26


class SettingsDialog(QDialog):
    """Modeless. ``changed`` gives the Settings after every change that makes sense."""

    changed = Signal(object)

    def __init__(self, parent: QWidget, settings: Settings):
        super().__init__(parent)
        self.setWindowTitle(tr("Settings"))
        self._settings = settings
        self._complaint = label(tone="error", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(20, 16, 20, 14)
        self._column.setSpacing(6)
        self._appearance()
        self._files()
        self._generation()
        self._safety()
        self._column.addWidget(self._complaint)
        buttons = QDialogButtonBox()
        close = buttons.addButton(tr("Close"), QDialogButtonBox.ButtonRole.AcceptRole)
        close.setAccessibleName(tr("Close"))
        buttons.accepted.connect(self.accept)
        self._column.addWidget(buttons)
        self._fill(settings)
        self._connect()
        self._complaint.hide()

    # Its four groups.

    def _appearance(self) -> None:
        themes = (
            (tr("as the system"), "system"),
            (tr("light"), "light"),
            (tr("dark"), "dark"),
            (tr("high contrast"), "contrast"),
        )
        self._theme = choice_box(tr("Theme"), tr("Colours of the window"), themes, 12)
        self._font = NumberField(
            tr("Font size"), tr("In points; empty: the system's"), *FONT_SIZES, None, hint=tr("system"), width=7
        )
        self._group(tr("Appearance"), (tr("Theme"), self._theme), (tr("Font size"), self._font))

    def _files(self) -> None:
        self._editor = _line(
            tr("Editor command"),
            tr("Command that opens a candidate, such as code --wait {file}; empty: the system's default"),
            tr("the system's"),
        )
        self._folder = _line(tr("Folder"), tr("Where save dialogs open; empty: the folder used last"), tr("last used"))
        self._browse = QPushButton(tr("Choose…"))
        self._browse.setAccessibleName(tr("Choose the folder"))
        self._browse.setToolTip(tr("Choose the folder"))
        self._browse.setAutoDefault(False)
        folder = QWidget()
        row = QHBoxLayout(folder)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._folder)
        row.addWidget(self._browse)
        self._proxy = _line(
            tr("Proxy"),
            tr("For downloads, such as http://proxy.example:3128; empty: from the environment"),
            tr("from the environment"),
        )
        self._group(
            tr("Files and network"),
            (tr("Editor command"), self._editor),
            (tr("Save to"), folder),
            (tr("Proxy"), self._proxy),
        )

    def _generation(self) -> None:
        tip = tr("Defaults for new windows")
        self._candidates = number_field(CANDIDATES, tip)
        self._temperature = number_field(TEMPERATURE, tip)
        self._top_p = number_field(TOP_P, tip)
        self._max_tokens = number_field(MAX_TOKENS, tip, width=6)
        self._group(
            tr("New windows start with"),
            (tr("Candidates"), self._candidates),
            (tr(TEMPERATURE.title), self._temperature),
            (tr(TOP_P.title), self._top_p),
            (tr(MAX_TOKENS.title), self._max_tokens),
        )

    def _safety(self) -> None:
        self._history = _check(tr("Keep runs in the history"), tr("Prompts and answers stay on this computer"))
        self._run_code = _check(tr("Allow tests to run generated code"), tr("When off, no generated code is ever run"))
        self._column.addSpacing(8)
        self._column.addWidget(label(tr("History and safety"), role="heading"))
        self._column.addWidget(self._history)
        self._column.addWidget(self._run_code)

    def _group(self, title: str, *rows: tuple[str, QWidget]) -> None:
        self._column.addSpacing(8 if self._column.count() else 0)
        self._column.addWidget(label(title, role="heading"))
        form = QFormLayout()
        form.setHorizontalSpacing(14)
        form.setVerticalSpacing(6)
        for text, field in rows:
            caption = label(text)
            caption.setMinimumWidth(10 * em())  # the same column in all four groups
            caption.setMinimumHeight(field.sizeHint().height())
            form.addRow(caption, field)
        self._column.addLayout(form)

    # What is in it.

    def _fill(self, settings: Settings) -> None:
        choose(self._theme, settings.theme)
        self._font.set_value(settings.font_size or None)
        for line, text in (
            (self._editor, settings.editor),
            (self._folder, settings.folder),
            (self._proxy, settings.proxy),
        ):
            line.setText(text)
            line.setCursorPosition(0)
        self._candidates.set_value(settings.candidates)
        self._temperature.set_value(settings.sampling.temperature)
        self._top_p.set_value(settings.sampling.top_p)
        self._max_tokens.set_value(settings.sampling.max_tokens)
        self._history.setChecked(settings.history)
        self._run_code.setChecked(settings.run_code)

    def _connect(self) -> None:
        self._theme.currentIndexChanged.connect(lambda _: self._take())
        for line in (
            *(self._font, self._editor, self._folder, self._proxy),
            *(self._candidates, self._temperature, self._top_p, self._max_tokens),
        ):
            line.textChanged.connect(lambda _: self._take())
        for box in (self._history, self._run_code):
            box.toggled.connect(lambda _: self._take())
        self._browse.clicked.connect(self._ask_folder)

    def _take(self) -> None:
        """Tell of the settings as they are now, or say what is wrong with them."""
        try:
            sampling = replace(
                self._settings.sampling,
                temperature=self._temperature.number(),
                top_p=self._top_p.number(),
                max_tokens=self._max_tokens.whole(),
            )
            settings = replace(
                self._settings,
                theme=self._theme.currentData(),
                font_size=int(self._font.value() or 0),
                editor=self._editor.text().strip(),
                folder=self._checked(self._folder, _is_folder, tr("There is no folder {text}.")),
                proxy=self._checked(self._proxy, _is_address, tr("A proxy begins with http:// or https://.")),
                candidates=self._candidates.whole(),
                sampling=sampling,
                history=self._history.isChecked(),
                run_code=self._run_code.isChecked(),
            )
        except BasslineError as error:
            self._complaint.setText(str(error))
            self._complaint.show()
            return
        self._complaint.hide()
        if settings != self._settings:
            self._settings = settings
            self.changed.emit(settings)

    def _checked(self, line: QLineEdit, good: Callable[[str], bool], sentence: str) -> str:
        text = line.text().strip()
        if text and not good(text):
            raise BadRequest(sentence.format(text=text))
        return text

    def _ask_folder(self) -> None:
        dialog = QFileDialog(self, tr("Folder to save to"), self._folder.text() or str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(self._folder.setText)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()


def _is_folder(text: str) -> bool:
    return Path(text).expanduser().is_dir()


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://")) and len(text.partition("://")[2]) > 0


def _line(name: str, tip: str, hint: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setToolTip(tip)
    line.setPlaceholderText(hint)
    line.setMinimumWidth(_WIDE * em())
    return line


def _check(text: str, tip: str) -> QCheckBox:
    box = QCheckBox(text)
    box.setAccessibleName(text)
    box.setToolTip(tip)
    return box
