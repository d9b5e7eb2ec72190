"""The servers a user has named: add one, change it, see what it can do, take it as the model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.theme import em
from app.ui.words import tr
from app.widgets.controls import label, set_tone
from engine.contract import BasslineError
from engine.session.servers import TOKEN_VARIABLE, Server, Token

if TYPE_CHECKING:
    from engine.server.probe import ServerProbe


class ServersDialog(QDialog):
    """Modeless. Its signals ask; whoever answers calls ``show_servers``, ``show_probe`` or ``complain``."""

    save_wanted = Signal(object, object)  # Server, Token
    remove_wanted = Signal(str)
    test_wanted = Signal(object, object)  # Server, Token or None for the one that is kept
    use_wanted = Signal(object)  # Server

    def __init__(self, parent: QWidget):
        super().__init__(parent)
        self.setWindowTitle(tr("Servers"))
        self._servers: list[Server] = []
        self._list = QListWidget()
        self._list.setAccessibleName(tr("Named servers"))
        self._list.setFixedWidth(12 * em())
        self._list.setSpacing(3)
        self._name = _line(tr("Name"), tr("A short name you choose"), tr("lab"))
        self._address = _line(tr("Address"), tr("Server URL"), "http://localhost:8000")
        self._model = QComboBox()
        self._model.setEditable(True)
        self._model.setLineEdit(_line(tr("Model on the server"), tr("Its name on the server"), ""))
        self._model.setAccessibleName(tr("Model on the server"))
        self._model.setToolTip(tr("Its name on the server; default is the first that it lists"))
        self._token = _line(tr("Token"), tr("Stored in the system's keyring only"), tr("none"))
        self._token.setEchoMode(QLineEdit.EchoMode.Password)
        self._ca_file = _line(
            tr("Certificates"), tr("A PEM file to trust in addition to the system's certificates"), tr("the system's")
        )
        self._proxy = _line(tr("Proxy"), tr("Empty: from the environment"), tr("from the environment"))
        self._found = label(wrap=True)
        self._found.setMinimumHeight(8 * self.fontMetrics().lineSpacing())
        self._found.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._buttons = {
            name: _button(text, tip)
            for name, text, tip in (
                ("new", tr("New"), tr("Add a new server")),
                ("remove", tr("Remove"), tr("Remove this server and its token")),
                ("test", tr("Test"), tr("Ask the server what it can do; takes some seconds")),
                ("save", tr("Save"), tr("Save this server under its name")),
                ("use", tr("Use"), tr("Use it for the next run")),
                ("close", tr("Close"), tr("Close")),
            )
        }
        self._lay_out()
        self._connect()
        self._show_server(Server("", "http://localhost:8000"), fresh=True)

    def show_servers(self, servers: Sequence[Server], chosen: str = "") -> None:
        self._servers = list(servers)
        self._list.blockSignals(True)
        self._list.clear()
        for server in servers:
            self._list.addItem(server.name)
        names = [server.name for server in servers]
        self._list.setCurrentRow(names.index(chosen) if chosen in names else -1)
        self._list.blockSignals(False)
        self._choose(self._list.currentRow())

    def show_probe(self, probe: "ServerProbe") -> None:
        """What a test has found, in words."""
        first = "" if probe.first_token_s is None else tr(", first token after {s:.1f} s").format(s=probe.first_token_s)
        about = tr("{model} answers; delay {ms:.0f} ms{first}.")
        lines = [about.format(model=probe.model, ms=1e3 * probe.latency_s, first=first)]
        lines += [f"•  {tr(sentence)}" for sentence in probe.lacks]
        if not probe.lacks:
            lines.append(tr("Supports n, seed and logprobs."))
        self._say("\n".join(lines), "")
        chosen = self._model.currentText()
        self._model.clear()
        self._model.addItems(["default", *probe.models])
        self._model.setEditText(chosen)

    def complain(self, sentence: str) -> None:
        self._say(sentence, "error")

    def say(self, sentence: str) -> None:
        self._say(sentence, "muted")

    def _say(self, words: str, tone: str) -> None:
        self._found.setText(words)
        set_tone(self._found, tone)
        self._buttons["test"].setEnabled(True)

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setHorizontalSpacing(14)
        for text, field in (
            (tr("Name"), self._name),
            (tr("Address"), self._address),
            (tr("Model on the server"), self._model),
            (tr("Token"), self._token),
            (tr("Certificates"), self._ca_file),
            (tr("Proxy"), self._proxy),
        ):
            caption = label(text)
            caption.setMinimumHeight(field.sizeHint().height())
            form.addRow(caption, field)
        left, right, below = QVBoxLayout(), QVBoxLayout(), QHBoxLayout()
        left.addWidget(self._list, 1)
        under = QHBoxLayout()
        for name in ("new", "remove"):
            under.addWidget(self._buttons[name])
        left.addLayout(under)
        right.addLayout(form)
        right.addWidget(self._found, 1)
        for name in ("test", "save", "use"):
            below.addWidget(self._buttons[name])
        below.addStretch(1)
        below.addWidget(self._buttons["close"])
        right.addLayout(below)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 16, 16, 14)
        row.setSpacing(16)
        row.addLayout(left)
        row.addLayout(right, 1)
        self.resize(54 * em(), 32 * em())

    def _connect(self) -> None:
        for name, do in (
            ("new", self._new),
            ("remove", self._remove),
            ("test", self._test),
            ("save", self._save),
            ("use", self._use),
            ("close", self.accept),
        ):
            self._buttons[name].clicked.connect(do)
        self._list.currentRowChanged.connect(self._choose)

    def _choose(self, row: int) -> None:
        self._buttons["remove"].setEnabled(row >= 0)
        if row >= 0:
            self._show_server(self._servers[row])

    def _show_server(self, server: Server, fresh: bool = False) -> None:
        for line, text in (
            (self._name, server.name),
            (self._address, "" if fresh else server.address),
            (self._ca_file, server.ca_file),
            (self._proxy, server.proxy),
            (self._token, ""),
        ):
            line.setText(text)
            line.setCursorPosition(0)
        self._token.setPlaceholderText(tr("kept in the keyring") if server.keeps_token else tr("none"))
        self._model.clear()
        self._model.addItem(server.model)
        self._model.setEditText(server.model)
        self._found.setText(
            tr("Without a keyring, set the token in the environment variable {name}.").format(name=TOKEN_VARIABLE)
            if fresh
            else ""
        )
        set_tone(self._found, "muted")

    def _new(self) -> None:
        self._list.setCurrentRow(-1)
        self._show_server(Server("", "http://localhost:8000"), fresh=True)
        self._name.setFocus()

    def _server(self) -> Server | None:
        """What the fields say; None, and a sentence below them, when it cannot be."""
        kept = next((server for server in self._servers if server.name == self._name.text().strip()), None)
        try:
            return Server(
                self._name.text().strip(),
                self._address.text().strip(),
                self._model.currentText().strip() or "default",
                self._ca_file.text().strip(),
                self._proxy.text().strip(),
                keeps_token=kept is not None and kept.keeps_token,
            )
        except BasslineError as error:
            self.complain(str(error))
            return None

    def _given_token(self) -> Token | None:
        try:
            return Token(self._token.text()) if self._token.text() else None
        except BasslineError as error:
            self.complain(str(error))
            return None

    def _test(self) -> None:
        if (server := self._server()) is not None:
            self.say(tr("Asking {host}…").format(host=server.host))
            self._buttons["test"].setEnabled(False)
            self.test_wanted.emit(server, self._given_token())

    def _save(self) -> None:
        if (server := self._server()) is not None:
            self.save_wanted.emit(server, self._given_token())

    def _remove(self) -> None:
        row = self._list.currentRow()
        if row >= 0:
            self.remove_wanted.emit(self._servers[row].name)

    def _use(self) -> None:
        if (server := self._server()) is not None:
            self.use_wanted.emit(server)


def _line(name: str, tip: str, hint: str) -> QLineEdit:
    line = QLineEdit()
    line.setAccessibleName(name)
    line.setToolTip(tip)
    line.setPlaceholderText(hint)
    return line


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setAccessibleName(text)
    button.setToolTip(tip)
    button.setAutoDefault(False)
    return button
