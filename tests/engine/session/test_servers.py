"""Named servers and their tokens."""

import json
import pickle
from pathlib import Path

import keyring
import keyring.backends.fail
import pytest

from engine.session import servers
from engine.session.servers import BadServer, NoKeyring, NoSuchServer, Server, Token, add, find, remove, token_of
from tests.memory_keyring import MemoryKeyring

SECRET = "sk-very-secret-1234567890"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BASSLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BASSLINE_SERVER_TOKEN", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("127.0.0.1:1234/", "http://127.0.0.1:1234/v1"),
        (" https://GPU.example/v1/ ", "https://gpu.example/v1"),
        ("https://api.example/openai/v2", "https://api.example/openai/v2"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_has_one_form(written: str, kept: str) -> None:
    assert Server("lab", written).address == kept


@pytest.mark.parametrize(
    "address", ["", "gpu.example:8000", "ftp://x", "http://", "http://x:port", "http://a b", "http://x\n"[:-1] + "\ty"]
)
def test_what_is_no_address_is_said_so(address: str) -> None:
    with pytest.raises(BadServer, match="begins with http:// or https://"):
        Server("lab", address)


@pytest.mark.parametrize(
    "address", [f"https://me:{SECRET}@x", f"https://{SECRET}@x", f"https://x/v1?key={SECRET}", f"https://x#{SECRET}"]
)
def test_an_address_holds_no_secret_and_the_error_does_not_repeat_it(address: str) -> None:
    for where in ({"address": address}, {"address": "https://x", "proxy": address}):
        with pytest.raises(BadServer, match="must hold no password and no query") as refused:
            Server("lab", **where)
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("name", ["two words", "a/b", "-x", "x" * 65])
def test_a_name_is_a_word(name: str) -> None:
    with pytest.raises(BadServer, match="made of letters"):
        Server(name, "http://x")


def test_servers_are_kept_found_replaced_and_forgotten() -> None:
    assert servers.servers() == []
    lab = add(Server("lab", "https://gpu.example:8000", "coder", proxy="http://proxy.example:3128"))
    home_ = add(Server("home", "localhost:11434"))
    assert servers.servers() == [home_, lab]
    assert find("lab") == find("https://gpu.example:8000/v1/") == lab
    other = add(Server("lab", "https://other.example"))
    assert servers.servers() == [home_, other]
    remove("home")
    assert servers.servers() == [other]
    with pytest.raises(NoSuchServer):
        remove("home")


def test_an_address_without_a_name_is_a_server_too() -> None:
    assert find("localhost:8000") == Server("", "http://localhost:8000/v1")
    with pytest.raises(NoSuchServer, match="No server is named 'lab' \\(known: none yet\\)"):
        find("lab")


def test_a_certificate_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadServer, match="There is no certificate file"):
        add(Server("lab", "https://x", ca_file=str(tmp_path / "none.pem")))


@pytest.mark.parametrize(
    "text", ["server = 3", "not toml", "[[server]]\nname = 'x'\n", "[[server]]\nname='x'\naddress='y'\n"]
)
def test_a_damaged_file_is_named_and_left_alone(home: Path, text: str) -> None:
    file = home / "settings" / "servers.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(BadServer, match=r"servers\.toml"):
        servers.servers()
    with pytest.raises(BadServer):
        add(Server("lab", "https://x"))
    assert file.read_text() == text


def test_a_token_lies_in_the_keyring_and_nowhere_else(home: Path, memory_keyring: MemoryKeyring) -> None:
    lab = add(Server("lab", "https://gpu.example"), Token(SECRET))
    assert lab.keeps_token
    assert memory_keyring.kept == {("bassline", "https://gpu.example/v1"): SECRET}
    assert token_of(find("lab")).reveal() == SECRET
    assert token_of(find("https://gpu.example")).reveal() == SECRET
    assert SECRET not in "".join(path.read_text() for path in home.rglob("*") if path.is_file())
    remove("lab")
    assert memory_keyring.kept == {}


def test_a_token_stays_when_a_server_changes_and_goes_when_it_moves(memory_keyring: MemoryKeyring) -> None:
    add(Server("lab", "https://gpu.example"), Token(SECRET))
    assert add(Server("lab", "https://gpu.example", "coder")).keeps_token
    assert not add(Server("lab", "https://other.example")).keeps_token
    assert memory_keyring.kept == {}


def test_a_token_is_shared_by_the_names_of_one_address(memory_keyring: MemoryKeyring) -> None:
    add(Server("lab", "https://gpu.example"), Token(SECRET))
    assert add(Server("large", "https://gpu.example", "large")).keeps_token
    remove("lab")
    assert not add(Server("free", "https://other.example")).keeps_token
    assert add(Server("paid", "https://other.example"), Token(SECRET)).keeps_token
    assert find("free").keeps_token
    remove("paid")
    remove("free")
    assert token_of(find("large")).reveal() == SECRET
    remove("large")
    assert memory_keyring.kept == {}


def test_without_a_keyring_the_environment_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoKeyring, match="BASSLINE_SERVER_TOKEN") as refused:
        add(Server("lab", "https://gpu.example"), Token(SECRET))
    assert SECRET not in str(refused.value)
    assert servers.servers() == []
    lab = add(Server("lab", "https://gpu.example"))
    assert not token_of(lab)
    monkeypatch.setenv("BASSLINE_SERVER_TOKEN", f" {SECRET}\n")
    assert token_of(lab).reveal() == SECRET


@pytest.mark.usefixtures("memory_keyring")
def test_a_keyring_that_breaks_down_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = add(Server("lab", "https://gpu.example"), Token(SECRET))
    keyring.set_keyring(keyring.backends.fail.Keyring())
    monkeypatch.setenv("BASSLINE_SERVER_TOKEN", "other")
    assert token_of(lab).reveal() == "other"


def test_a_token_does_not_show_itself() -> None:
    token = Token(SECRET)
    assert SECRET not in f"{token!r} {token} {[token]} {vars(Token)}"
    assert token.hide(f"Incorrect key: {SECRET}.") == "Incorrect key: (token)."
    assert not Token("  ")
    for store in (pickle.dumps, json.dumps):
        with pytest.raises(TypeError):
            store(token)


@pytest.mark.parametrize("secret", [f"{SECRET}\r\nX-Header: 1", f"{SECRET} two", "žeton"])
def test_a_token_that_no_header_can_hold_is_refused_unquoted(secret: str) -> None:
    with pytest.raises(BadServer, match="The token holds characters") as refused:
        Token(secret)
    assert secret not in str(refused.value)


@pytest.mark.parametrize("part", ["address", "model", "ca_file", "proxy"])
def test_bytes_that_are_no_text_never_reach_the_file(part: str) -> None:
    words = {"name": "lab", "address": "http://lab:1", part: "http://\udcff"}
    with pytest.raises(BadServer, match="are text in UTF-8"):
        Server(**words)
    add(Server("lab", "http://lab:1", model="größer 1"))
    assert find("lab").model == "größer 1"


def test_a_file_that_is_no_text_is_damaged(home: Path) -> None:
    (home / "settings").mkdir(parents=True)
    (home / "settings" / "servers.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadServer, match=r"servers\.toml cannot be read; repair it"):
        find("lab")
