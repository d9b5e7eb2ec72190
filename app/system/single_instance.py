"""One window per user: a second start brings the first window to the front and leaves."""

import hashlib
import os
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_TIMEOUT_MS = 1000


class SingleInstance(QObject):
    """``raise_wanted``: somebody has started Bassline once more, with the same data.

    The name of the socket depends on the user and the folder of the data: two homes are two Basslines.
    """

    raise_wanted = Signal()

    def __init__(self, data: Path, parent: QObject | None = None):
        super().__init__(parent)
        user = os.environ.get("USER") or os.environ.get("USERNAME") or ""
        digest = hashlib.sha256(f"{user}\0{data.absolute()}".encode()).hexdigest()[:16]
        self._name = f"bassline-{digest}"
        self._server: QLocalServer | None = None

    def claim(self) -> bool:
        """True for the first; False when another one runs, which was asked to come to the front.

        Where no socket can be had the window opens anyway: two are better than none.
        """
        if self._call_the_first():
            return False
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        if not server.listen(self._name):
            QLocalServer.removeServer(self._name)  # what a killed Bassline left behind
            server.listen(self._name)
        server.newConnection.connect(self._called)
        self._server = server
        return True

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _call_the_first(self) -> bool:
        """To connect is to call: there is nothing else to say."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        return socket.waitForConnected(_TIMEOUT_MS)

    def _called(self) -> None:
        assert self._server is not None
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            socket.disconnectFromServer()
            self.raise_wanted.emit()
