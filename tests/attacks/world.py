"""What an attack is after, planted where this test's own user can reach it, and a look at it afterwards."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"


class World:
    def __init__(self, folder: Path):
        self.home, self.loot, self.alive = folder / "home", folder / "loot", folder / "alive"
        self.secrets = {
            self.home / ".ssh/id_rsa": "PLANTED key",
            self.home / ".local/share/app/history.db": "PLANTED history",
            self.home / "project/notes.txt": "PLANTED notes",
        }
        for path, text in self.secrets.items():
            path.parent.mkdir(parents=True)
            path.write_text(text)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.named, self.abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.named.bind(str(folder / "s"))
        self.abstract.bind("\0" + str(folder))
        self.fields = {
            "@HOME@": str(self.home),
            "@LOOT@": str(self.loot),
            "@ALIVE@": str(self.alive),
            "@PORT@": str(self.tcp.getsockname()[1]),
            "@SOCKET@": str(folder / "s"),
            "@ABSTRACT@": str(folder),
        }
        self.doors = (self.tcp, self.named, self.abstract)
        for door in self.doors:
            door.listen()
            door.setblocking(False)

    def laid_out(self, name: str) -> str:
        """The attack of that name, its placeholders filled."""
        text = (CASES / f"{name}.txt").read_text()
        for field, value in self.fields.items():
            text = text.replace(field, value)
        return text

    def assert_untouched(self) -> None:
        assert not self.loot.exists()
        assert not self.alive.exists()
        assert {path: path.read_text() for path in self.secrets} == self.secrets
        for door in self.doors:
            with pytest.raises(BlockingIOError):
                door.accept()


@contextmanager
def planted(folder: Path) -> Iterator[World]:
    world = World(folder)
    try:
        yield world
    finally:
        for door in world.doors:
            door.close()
