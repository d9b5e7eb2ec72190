"""Named servers in the window: kept by ``engine.session.servers``, looked at by ``engine.server.probe``."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.dialogs.servers import ServersDialog
from app.system.tasks import Task
from app.ui.words import tr
from app.widgets.main_window import MainWindow
from engine.contract import BasslineError
from engine.session import servers
from engine.session.servers import Server, Token


class ServersController(QObject):
    """Opens the dialog and does what it asks for. A test runs on a thread of its own."""

    def __init__(self, window: MainWindow, parent: QObject | None = None):
        super().__init__(parent)
        self._window = window
        self._dialog: ServersDialog | None = None
        self._probing = Task(self)
        self._probing.done.connect(self._found)
        self._probing.failed.connect(self._not_found)
        window.on("servers", self.open)

    def open(self) -> None:
        if self._dialog is None:
            self._dialog = dialog = ServersDialog(self._window)
            dialog.save_wanted.connect(self._save)
            dialog.remove_wanted.connect(self._remove)
            dialog.test_wanted.connect(self._test)
            dialog.use_wanted.connect(self._use)
            dialog.finished.connect(self._closed)
            self._show()
            dialog.show()
        else:
            self._dialog.raise_()
            self._dialog.activateWindow()

    def close(self) -> None:
        if self._dialog is not None:
            self._dialog.close()

    @Slot(object, object)
    def _save(self, server: Server, token: Token | None) -> None:
        self._try(lambda: servers.add(server, token), server.name, tr("{name} is saved.").format(name=server.name))

    @Slot(str)
    def _remove(self, name: str) -> None:
        self._try(lambda: servers.remove(name), "", tr("{name} is removed.").format(name=name))

    @Slot(object, object)
    def _test(self, server: Server, token: Token | None) -> None:
        def look() -> object:
            from engine.server.probe import probe  # brings the HTTP library

            return probe(server, token=token)

        self._probing.run(look)

    @Slot(object)
    def _use(self, server: Server) -> None:
        self._window.bar.choose_model(f"{server.address}#{server.model}")
        self._window.bar.model_chosen.emit()
        self.close()

    @Slot(object)
    def _found(self, probe: object) -> None:
        if self._dialog is not None:
            self._dialog.show_probe(probe)  # type: ignore[arg-type]

    @Slot(str)
    def _not_found(self, sentence: str) -> None:
        if self._dialog is not None:
            self._dialog.complain(sentence)

    @Slot()
    def _closed(self) -> None:
        self._probing.forget()
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    def _show(self, chosen: str = "") -> None:
        assert self._dialog is not None
        try:
            self._dialog.show_servers(servers.servers(), chosen)
        except BasslineError as error:
            self._dialog.complain(str(error))

    def _try(self, do: Callable[[], object], chosen: str, words: str) -> None:
        assert self._dialog is not None
        try:
            do()
        except BasslineError as error:
            self._dialog.complain(str(error))
        else:
            self._show(chosen)
            self._dialog.say(words)
