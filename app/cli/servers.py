"""``servers``: name a server, list them, forget one, and see what one can do."""

import argparse
import getpass
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.cli.output import print_object, say
from engine.contract import BadRequest
from engine.session.servers import TOKEN_VARIABLE, Server, Token, add, find, remove, servers

if TYPE_CHECKING:
    from engine.server.probe import ServerProbe

_HELP = f"""\
examples:
  servers add lab https://gpu.example:8000 --token     asks for the token, which goes into the system's keyring
  servers test lab                                     models, delay, and what the server supports
  generate "..." --server lab                          or --server http://localhost:8000, without a name

Without a keyring, set the token in the environment variable {TOKEN_VARIABLE}."""


def add_servers(commands: "argparse._SubParsersAction[Any]") -> None:
    command = commands.add_parser(
        "servers",
        help="OpenAI-compatible servers: list, add, remove, test",
        description="OpenAI-compatible servers that run models: vLLM, SGLang, llama-server, Ollama, LM Studio.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = command.add_subparsers(dest="servers_command", metavar="COMMAND", required=True, parser_class=type(command))
    listing = what.add_parser("list", help="list the servers that you have named", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print one JSON array")
    adding = what.add_parser("add", help="add a server under a name, or change one", allow_abbrev=False)
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("address", metavar="ADDRESS", help="such as http://localhost:8000")
    adding.add_argument(
        "--model", default=Server.model, help="the model's name on the server (default: the first one listed)"
    )
    adding.add_argument(
        "--ca-file", default="", metavar="FILE", help="certificates to trust in addition to the system's (PEM)"
    )
    adding.add_argument("--proxy", default="", metavar="ADDRESS", help="default: what HTTPS_PROXY and its like say")
    adding.add_argument("--token", action="store_true", help="ask for a token; from a pipe, its first line")
    removing = what.add_parser("remove", help="remove a server and its token", allow_abbrev=False)
    removing.add_argument("name", metavar="NAME")
    testing = what.add_parser("test", help="ask a server what it can do", allow_abbrev=False)
    testing.add_argument("server", metavar="NAME-OR-ADDRESS")
    testing.add_argument("--model", default="", help="the model's name on the server (default: as for the server)")
    testing.add_argument("--json", action="store_true", help="print one JSON object")


def command(arguments: argparse.Namespace) -> int:
    """Raises the errors of ``engine.session.servers`` and ServerFault."""
    match arguments.servers_command:
        case "list":
            _list(arguments.json)
        case "add":
            _add(arguments)
        case "remove":
            remove(arguments.name)
            say(f"{arguments.name} is removed.")
        case _:
            _test(arguments)
    return 0


def _list(as_json: bool) -> None:
    known = servers()
    if as_json:
        print_object([_row(server) for server in known])
        return
    width = max((len(server.name) for server in known), default=0)
    for server in known:
        model = "" if server.model == "default" else f"  {server.model}"
        print(f"{server.name:<{width}}  {server.address}{model}{'  (token kept)' if server.keeps_token else ''}")
    if not known:
        say("There are no servers yet; add one with servers add NAME ADDRESS.")


def _row(server: Server) -> dict[str, str | bool]:
    return dict(vars(server))


def _add(arguments: argparse.Namespace) -> None:
    ca_file = os.path.abspath(os.path.expanduser(arguments.ca_file)) if arguments.ca_file else ""
    server = Server(arguments.name, arguments.address, arguments.model, ca_file, arguments.proxy)
    before = next((each.address for each in servers() if each.name == server.name), server.address)
    kept = add(server, _ask_for_token() if arguments.token else None)
    instead = f", no longer {before}" if before != kept.address else ""
    say(f"{kept.name} is {kept.address}{instead}{', its token is in the keyring' if kept.keeps_token else ''}.")


def _ask_for_token() -> Token:
    """Typed without an echo, or one line from a pipe; never an argument, which others could read."""
    typed = getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not typed.strip():
        raise BadRequest("No token was given; nothing is changed.")
    return Token(typed)


def _test(arguments: argparse.Namespace) -> None:
    from engine.server.probe import probe  # brings the HTTP library

    found = probe(find(arguments.server), arguments.model)
    if arguments.json:
        seen = {"n": found.n, "seed": found.seed, "logprobs": found.logprobs, "chat": found.chat}
        times = {"latency_s": found.latency_s, "first_token_s": found.first_token_s}
        about = {"model": found.model, "models": list(found.models), "context": found.context}
        print_object(about | times | {"heeds": seen, "lacks": list(found.lacks)})
        return
    for line in _lines(found):
        print(line)


def _lines(found: "ServerProbe") -> Iterator[str]:
    yield f"model     {found.model}"
    others = [name for name in found.models if name != found.model]
    if others:
        yield f"others    {', '.join(others)}"
    if found.context:
        yield f"context   {found.context:,} tokens"
    first = "" if found.first_token_s is None else f", first token after {1e3 * found.first_token_s:.0f} ms"
    yield f"delay     {1e3 * found.latency_s:.0f} ms{first}"
    words = {True: "yes", False: "no", None: "not seen"}
    yield f"supports  n: {words[found.n]}, seed: {words[found.seed]}, logprobs: {words[found.logprobs]}"
    for sentence in found.lacks:
        yield f"          {sentence}"
