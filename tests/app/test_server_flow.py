"""From a prompt to verdicts on a server, in the window and on the command line; and where its token never appears."""

import io
import itertools
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.cli import main
from app.system.crash_log import CrashLog, log
from app.system.engines import open_engine, recorded_answers
from engine.server import client
from engine.session.servers import Server, Token, add
from tests.app.stage import ASSERTS, PROMPT, Stage
from tests.engine.server.fake import Exchange, FakeServer, Polite, at_home

SECRET = "sk-very-secret-1234567890"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return at_home(tmp_path / "home", monkeypatch)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(Polite(texts=tuple(recorded_answers()))) as server:
        yield server


@pytest.fixture
def tests_file(tmp_path: Path) -> str:
    file = tmp_path / "tests.py"
    file.write_text(ASSERTS)
    return str(file)


@pytest.mark.sandbox
def test_the_whole_path_on_the_command_line(
    server: FakeServer, tests_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["generate", PROMPT, "--server", server.address, "-n", "3", "--seed", "0", "--tests", tests_file, "--yes"]
    assert main([*words, "--max-tokens", "1000", "--export", str(out)]) == 0
    said = capsys.readouterr()
    assert "def roman_to_int" in said.out
    assert "small is ready (127.0.0.1:" in said.err
    assert "3 candidates, seed 0.\n" in said.err
    assert "candidates pass; candidate" in said.err
    result = json.loads((out / "result.json").read_text())
    assert result["models"]["server"] == server.address
    assert {candidate["state"] for candidate in result["candidates"]} == {"done"}


def test_servers_are_named_listed_tested_and_forgotten(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["servers", "add", "lab", server.address, "--model", "large"]) == 0
    assert main(["servers", "list"]) == 0
    assert capsys.readouterr().out == f"lab  {server.address}  large\n"
    assert main(["servers", "test", "lab"]) == 0
    tested = capsys.readouterr().out
    assert "model     large\nothers    small\n" in tested
    assert "supports  n: yes, seed: yes, logprobs: yes\n" in tested
    assert main(["servers", "test", "lab", "--json", "--model", "small"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["heeds"] == {"n": True, "seed": True, "logprobs": True, "chat": True}
    assert (found["model"], found["context"], found["lacks"]) == ("small", 4096, [])
    assert main(["generate", PROMPT, "--server", "lab", "-n", "1", "--progress", "none"]) == 0
    assert server.asked[-1].body["model"] == "large"
    capsys.readouterr()
    assert main(["servers", "remove", "lab"]) == 0
    assert main(["servers", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["servers", "test", "lab"], "No server is named 'lab' (known: none yet)"),
        (["servers", "remove", "lab"], "No server is named 'lab'"),
        (["servers", "add", "lab", "gpu"], "That is no address of a server"),
        (["generate", "x", "--server", "http://127.0.0.1:1"], "Nothing answers at 127.0.0.1:1"),
    ],
)
def test_bad_use_is_a_sentence_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_the_whole_path_in_the_window(server: FakeServer, open_stage: Callable[..., Stage]) -> None:
    on = open_stage()
    on.controller.loading.open_engine = open_engine
    on.window.bar.choose_model(server.address)
    on.write()
    on.generate(3)
    on.finish()
    on.do("run_tests")
    run = on.controller.run
    assert run is not None
    on.until(lambda: run.tested)
    assert {candidate.state for candidate in run.candidates.values()} == {"done"}
    assert any(candidate.passed for candidate in run.candidates.values())
    ready = on.controller.loading.ready
    assert ready is not None
    assert server.address == f"http://{ready.device}/v1"
    assert server.asked_for(PROMPT)[0].body["n"] == 3


def test_stop_in_the_window_closes_the_connection(server: FakeServer, open_stage: Callable[..., Stage]) -> None:
    on = open_stage()
    on.controller.loading.open_engine = open_engine
    on.window.bar.choose_model(server.address)
    on.write()

    polite = server.answer
    server.answer = lambda exchange: exchange.wait_until_gone() if exchange.prompt == PROMPT else polite(exchange)
    on.generate(2)
    on.until(lambda: bool(server.asked_for(PROMPT)))
    on.do("stop")
    on.finish()
    on.until(lambda: server.asked_for(PROMPT)[0].gone)
    assert on.controller.run is not None
    assert on.controller.run.state == "stopped"


# The token.


class Quoting:
    """Every kind of error that a server may quote a token in, one after another."""

    def __init__(self) -> None:
        self._kinds = itertools.cycle((400, 500, 200))

    def __call__(self, exchange: Exchange) -> None:
        words = f"Incorrect API key provided: {exchange.headers['Authorization']}"
        if (status := next(self._kinds)) != 200:
            exchange.refuse(status, {"error": {"message": words}})
            return
        exchange.begin()
        exchange.text("half")
        exchange.send({"error": {"message": words}})


def everything_under(home: Path) -> str:
    """Every file as text, and every row of every database."""
    parts = []
    for path in home.rglob("*"):
        if path.is_file():
            parts.append(path.read_bytes().decode("utf-8", "replace"))
            if path.suffix == ".sqlite":
                with sqlite3.connect(path) as base:
                    parts.append("\n".join(base.iterdump()))
                base.close()
    return "\n".join(parts)


@pytest.mark.usefixtures("memory_keyring")
def test_the_token_is_in_no_journal_log_crash_report_export_or_output(
    server: FakeServer,
    home: Path,
    open_stage: Callable[..., Stage],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))
    assert main(["servers", "add", "lab", server.address, "--token"]) == 0
    assert main(["servers", "list", "--json"]) == 0
    assert main(["servers", "test", "lab"]) == 0
    words = ["generate", PROMPT, "--server", "lab", "-n", "2"]
    polite = server.answer
    quoting = Quoting()
    for count, progress in enumerate(("jsonl", "auto", "none", "jsonl")):
        assert main([*words, "--progress", progress, "--json", "--export", str(home / f"out-{count}")]) in (0, 1)
        server.answer = lambda exchange: quoting(exchange) if exchange.prompt == PROMPT else polite(exchange)
    server.answer = quoting  # to the probe, too
    assert main(words) == 2
    server.answer = polite
    assert {headers.get("Authorization") for _, headers in server.seen} == {f"Bearer {SECRET}"}

    crashes = CrashLog(home / "logs")
    with crashes.installed():
        on = open_stage()
        on.controller.loading.open_engine = open_engine
        on.window.bar.choose_model(server.address)
        on.write()
        on.generate(2)
        on.finish()

        def broken(data: object) -> None:
            raise RuntimeError("a bug of ours, in the middle of a stream")

        monkeypatch.setattr(client, "read_chunk", broken)
        on.generate(2)
        on.finish()
        run = on.controller.run
        assert run is not None
        assert "a bug of ours" in run.details
        talking = client.Client(Server("", server.address), Token(SECRET))
        try:
            raise RuntimeError(f"{talking!r} {vars(talking)!r}")
        except RuntimeError as error:
            log.error("it broke: %r %s", error, run.details)
            sys.excepthook(type(error), error, error.__traceback__)
        crashes.dump_stacks()
        shown = " ".join([on.window.notice.sentence, on.window.status.text, run.reason, run.details])
    said = capsys.readouterr()
    kept = everything_under(tmp_path)
    assert {"result.json", "history.sqlite", "window.log", "crash.log"} <= {path.name for path in home.rglob("*")}
    assert kept.count(PROMPT) > 10  # the journal and the exports were read
    assert "a bug of ours" in kept
    assert "(token)" in said.err
    for text in (kept, said.out, said.err, shown):
        assert SECRET not in text


def test_a_kept_server_shows_whether_it_has_a_token(memory_keyring: object, capsys: pytest.CaptureFixture[str]) -> None:
    add(Server("lab", "https://gpu.example"), Token(SECRET))
    assert main(["servers", "list"]) == 0
    assert capsys.readouterr().out == "lab  https://gpu.example/v1  (token kept)\n"
