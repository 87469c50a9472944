"""``cascade-memory serve``: the memory as an MCP server."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from cascade_memory import mcp_server
from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.cli.arguments import refusal
from cascade_memory.cli.log_lines import log_to_standard_error
from cascade_memory.cli.opening import EMBEDDER, existing, place
from cascade_memory.cli.standard_error import finish, never_wait
from cascade_memory.domain.actions import check_actor
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.mcp_server.clients import tokens_in
from cascade_memory.mcp_server.serve import Listening
from cascade_memory.mcp_server.serve import serve as run
from cascade_memory.redaction.saying import take_from_all_lines

_TOKEN = "CASCADE_MEMORY_TOKEN"
_STOP = (signal.SIGTERM, signal.SIGINT)


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped. Only the protocol is written to standard output."""
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
    _ = mcp_server.build  # without the extra this raises, before anything is made

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
        )
        for one in _STOP:
            signal.signal(one, signal.SIG_IGN)  # the memory is being closed already
    return 0


def _opened(options: argparse.Namespace) -> CascadeMemory:
    """Open the memory; the environment names the embedder of a new one, and an existing one keeps its own."""
    others: dict[str, Any] = {
        "namespace": options.namespace,
        "k": options.k,
        "chroma": options.chroma,
        "tickets": options.tickets,
    }
    try:
        return CascadeMemory(options.path, embedder=options.embedder or os.environ.get(EMBEDDER) or "auto", **others)
    except EncoderMismatch:
        if options.embedder:
            raise
        return CascadeMemory(options.path, **others)


def _check_stdio(options: argparse.Namespace) -> None:
    """Refuse options that would be ignored silently."""
    usual = Listening()
    given = {"host": (options.host, usual.host), "port": (options.port, usual.port), "rate": (options.rate, usual.per_minute)}
    ignored = [name for name, (value, default) in given.items() if value != default]
    if ignored or options.token_file is not None:
        raise InvalidInput(f"--{(*ignored, 'token-file')[0]} can only be used with --transport http")


def _say_what_to_expect(memory: CascadeMemory, options: argparse.Namespace) -> None:
    """Tell a person who starts the server by hand why nothing happens, and anybody that nothing can be stored."""
    why = memory.health().read_only
    if why is not None and not options.read_only:
        sys.stderr.write(f"cascade-memory serve: {refusal(why)}; agents can look up cases, but report nothing\n")
    if options.transport == "stdio" and sys.stdin.isatty():
        sys.stderr.write("waiting for an MCP client on standard input (Ctrl-C stops); for HTTP: --transport http\n")


def _leave(*_: object) -> None:
    sys.exit(0)


def _close_on_signal(memory: CascadeMemory) -> None:
    """Close the memory and end the process on a signal: the SDK reads lines on a thread that no exception can stop."""

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
    """Raise if somebody else listens already, before the memory is opened."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as one:
            if os.name == "posix":  # as the server does: elsewhere it would take the port of another program
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): pass another port with --port, or stop the "
            "program that uses it"
        ) from error


def tokens_of(file: str | None) -> dict[str, str | None] | None:
    """Read the tokens of the clients, each with a name or without; None if there are none."""
    text = token_of(file)
    return None if text is None else tokens_in(text, _TOKEN if file is None else file)


def token_of(file: str | None) -> str | None:
    """Read the token. It is never an argument of the command, since every user of the machine could read that."""
    if file is None:
        return os.environ.get(_TOKEN) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error
