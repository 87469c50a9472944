"""``cascade-memory serve``: a memory for agents over MCP, or for people in a browser, until it is stopped."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory import capabilities, mcp_server
from cascade_memory.cli.arguments import refusal, share
from cascade_memory.cli.groups import Commands
from cascade_memory.cli.opening import EMBEDDER, EMBEDDERS, add_namespace, add_place, existing, place
from cascade_memory.cli.standard_error import finish, log_to_standard_error, never_wait
from cascade_memory.domain.actions import check_actor
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.mcp_server.clients import tokens_in
from cascade_memory.redaction.saying import take_from_all_lines

if TYPE_CHECKING:
    from cascade_memory.assembly.cascade import CascadeMemory

_TOKEN = "CASCADE_MEMORY_TOKEN"
_STOP = (signal.SIGTERM, signal.SIGINT)


def add(groups: Commands) -> None:
    """Add the group."""
    group = groups.group("serve", "offer a memory to agents over MCP, or to people in the browser")
    _add_mcp(group)
    _add_inspector(group)


def _add_mcp(group: Commands) -> None:
    about = "offer the memory to tool-calling agents over MCP, until stopped"
    command = group.command("mcp", serve, about, json=False)
    add_place(command, option=True)
    command.add_argument("--transport", choices=["stdio", "http"], default="stdio")
    add_namespace(command)
    about = f"for a new memory: {', '.join(EMBEDDERS)} (default: the environment variable {EMBEDDER}, else auto)"
    command.add_argument("--embedder", metavar="NAME", help=about)
    levels = ("debug", "info", "warning", "error")
    about = "what to log on standard error; info: a line for each recall and reward (default warning)"
    command.add_argument("--log-level", choices=levels, default="warning", help=about)
    command.add_argument("--k", type=int, default=3, help="the largest number of cases that a recall shows (default 3)")
    command.add_argument("--read-only", action="store_true", help="cases can be looked up, but nothing can be written")
    about = "learn at once from what agents report about themselves"
    command.add_argument("--trust-agent-rewards", action="store_true", help=about)
    about = "give each recall a signed ticket, and take no report without it"
    command.add_argument("--tickets", action="store_true", help=about)
    about = "the name that is recorded for a client whose token has no name (default: none)"
    command.add_argument("--actor", metavar="NAME", help=about)
    http = command.add_argument_group("with --transport http")
    about = "the address to listen on; any that other machines can reach needs a token"
    http.add_argument("--host", default="127.0.0.1", help=about)
    http.add_argument("--port", type=int, default=8765)
    about = "file with a line for each client, its name and its bearer token, or with one token alone (default: the "
    http.add_argument("--token-file", metavar="FILE", help=f"{about}environment variable {_TOKEN})")
    about = "requests per minute and client; 0: no limit (default 600)"
    http.add_argument("--rate", type=int, default=600, metavar="N", help=about)


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped. Only the protocol is written to standard output."""
    from cascade_memory.mcp_server.serve import Listening
    from cascade_memory.mcp_server.serve import serve as run

    if options.read_only:
        existing(options, options.namespace).close()  # a read-only server must not create a memory either
    listening = None
    if options.transport == "stdio":
        _check_stdio(options)
    if options.transport == "http":
        listening = Listening(
            host=options.host,
            port=options.port,
            token=tokens_of(options.token_file),
            per_minute=options.rate,
        )
        _check_free(options.host, options.port)
    if find_spec("mcp") is None:
        _ = mcp_server.build  # raises, before anything is made

    # Close the memory before the process ends: on HTTP, the server stops by itself, but then raises the signal again.
    signal.signal(signal.SIGTERM, _leave)
    place(options)
    never_wait()  # whoever started the server need not read what it logs
    log_to_standard_error(options.log_level)
    take_from_all_lines()
    with _opened(options) as memory:
        if listening is None:
            _close_on_signal(memory)
        _say_what_to_expect(memory, options)
        run(
            memory,
            read_only=options.read_only,
            trust_agent_rewards=options.trust_agent_rewards,
            listening=listening,
            actor=check_actor(options.actor),
            beside={} if listening is None or options.read_only else _beside(memory),
        )
        for one in _STOP:
            signal.signal(one, signal.SIG_IGN)  # the memory is being closed already
    return 0


def _beside(memory: CascadeMemory) -> dict[str, Any]:
    """Return what the capabilities answer on HTTP beside MCP, by its path."""
    return {path: app for part in capabilities.parts("routes") for path, app in part.routes(memory).items()}


def _opened(options: argparse.Namespace) -> CascadeMemory:
    """Open the memory; the environment names the embedder of a new one, and an existing one keeps its own."""
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.memory.options import Trust

    others: dict[str, Any] = {
        "namespace": options.namespace,
        "k": options.k,
        "chroma": options.chroma,
        "trust": Trust(tickets=options.tickets),
    }
    try:
        return CascadeMemory(options.path, embedder=options.embedder or os.environ.get(EMBEDDER) or "auto", **others)
    except EncoderMismatch:
        if options.embedder:
            raise
        return CascadeMemory(options.path, **others)


def _check_stdio(options: argparse.Namespace) -> None:
    """Raise an error for options that only HTTP uses, since they would be ignored silently."""
    from cascade_memory.mcp_server.serve import Listening

    usual = Listening()
    given = {"host": (options.host, usual.host), "port": (options.port, usual.port), "rate": (options.rate, usual.per_minute)}
    ignored = [name for name, (value, default) in given.items() if value != default]
    if ignored or options.token_file is not None:
        raise InvalidInput(f"--{(*ignored, 'token-file')[0]} can only be used with --transport http")


def _say_what_to_expect(memory: CascadeMemory, options: argparse.Namespace) -> None:
    """Print a warning if nothing can be stored; tell a person who starts the server by hand that it waits for a client."""
    why = memory.health().read_only
    if why is not None and not options.read_only:
        sys.stderr.write(f"{options.called}: {refusal(why)}; agents can look up cases, but report nothing\n")
    if options.transport == "stdio" and sys.stdin.isatty():
        sys.stderr.write("waiting for an MCP client on standard input (Ctrl-C stops); for HTTP: --transport http\n")


def _leave(*_: object) -> None:
    sys.exit(0)


def _close_on_signal(memory: CascadeMemory) -> None:
    """Let a signal close the memory and end the process: the SDK reads lines on a thread that no exception can stop."""

    def leave() -> None:
        try:
            memory.close()
        finally:
            finish()
            os._exit(0)

    def signalled(*_: object) -> None:
        for one in _STOP:
            signal.signal(one, signal.SIG_IGN)
        threading.Thread(target=leave, name="cascade-memory-leave").start()

    for one in _STOP:
        signal.signal(one, signalled)


def _check_free(host: str, port: int) -> None:
    """Raise an error if another program listens on this port; call this before the memory is opened."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as one:
            if os.name == "posix":  # as the server does: elsewhere it would take the port of another program
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
    except OSError as error:
        raise InvalidInput.cannot_listen(host, port, error) from error


def _add_inspector(serve: Commands) -> None:
    about = "show the memory in the browser: what it holds, why it decided as it did; with --edit, to correct it"
    command = serve.command("inspector", inspect, about, json=False)
    add_place(command)
    add_namespace(command)
    command.add_argument("--edit", action="store_true", help="allow corrections, verdicts and forgetting")
    about = "the name under which changes are recorded (default: your name on this machine)"
    command.add_argument("--actor", metavar="NAME", help=about)
    about = "the share of episodes about which people are asked for a verdict (default 1: all that wait)"
    command.add_argument("--rate", type=share, default=1.0, metavar="P", help=about)
    command.add_argument("--no-browser", action="store_true", help="print the link, and open no browser")
    about = "the address to listen on; any that other machines can reach needs a token and --allow-host"
    command.add_argument("--host", default="127.0.0.1", help=about)
    command.add_argument("--port", type=int, default=0, help="the port to listen on (default: any free one)")
    about = "a name under which browsers may ask for it, without port; may be given several times"
    command.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=about)
    about = "file with the token that people enter (default: the environment variable CASCADE_MEMORY_TOKEN)"
    command.add_argument("--token-file", metavar="FILE", help=about)


def inspect(options: argparse.Namespace) -> int:
    """Show a memory in the browser until stopped."""
    from cascade_memory.assembly.cascade import CascadeMemory
    from cascade_memory.inspector import Listening, run

    listening = Listening(
        host=options.host, port=options.port, allow_hosts=tuple(options.allow_host), token=token_of(options.token_file)
    )
    never_wait()
    with (
        existing(options, options.namespace),
        CascadeMemory(options.path, embedder="stored", chroma=options.chroma, namespace=options.namespace) as memory,
    ):
        memory.data.stand_aside()
        with contextlib.suppress(OSError, AttributeError):  # Windows has no nice
            os.nice(10)  # agents come first
        run(memory, listening, edit=options.edit, actor=options.actor, browser=not options.no_browser, rate=options.rate)
    return 0


def tokens_of(file: str | None) -> dict[str, str | None] | None:
    """Read the tokens of the clients, each with a name or without; None if there are none."""
    text = token_of(file)
    return None if text is None else tokens_in(text, _TOKEN if file is None else file)


def token_of(file: str | None) -> str | None:
    """Return the text of the token file, or of the environment variable if no file is given; None if there is neither.

    A token is never an argument, since every user of the machine could read it.
    """
    if file is None:
        return os.environ.get(_TOKEN) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error
