"""``cascade-memory serve``: the memory as an MCP server."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.assembly.folder import check_there
from cascade_memory.domain.display import no_namespace
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.serve import Listening
from cascade_memory.mcp_server.serve import serve as run

_TOKEN = "CASCADE_MEMORY_TOKEN"
_STOP = (signal.SIGTERM, signal.SIGINT)


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped. Nothing is written to standard output but the protocol itself."""
    if options.read_only:
        check_there(options.path)  # nothing may be written, so a folder must not be made either
        with CascadeMemory(options.path, embedder="stored") as memory:
            if (names := memory.namespaces()) and options.namespace not in names:
                raise InvalidInput(no_namespace(options.namespace, names))
    listening = None
    if options.transport == "stdio":
        _check_stdio(options)
    if options.transport == "http":
        listening = Listening(
            host=options.host,
            port=options.port,
            token=_token(options.token_file),
            per_minute=options.rate,
        )
    # The memory is to be closed before the process ends: on HTTP the server stops by itself, but then raises the signal again.
    signal.signal(signal.SIGTERM, _leave)
    with CascadeMemory(options.path, namespace=options.namespace, k=options.k) as memory:
        if listening is None:
            _leave_when_told(memory)
        run(memory, read_only=options.read_only, trust_agent_rewards=options.trust_agent_rewards, listening=listening)
        for one in _STOP:
            signal.signal(one, signal.SIG_IGN)  # it is being closed already
    return 0


def _check_stdio(options: argparse.Namespace) -> None:
    """Refuse what would be ignored without a word."""
    usual = Listening()
    given = {"host": (options.host, usual.host), "port": (options.port, usual.port), "rate": (options.rate, usual.per_minute)}
    ignored = [name for name, (value, default) in given.items() if value != default]
    if ignored or options.token_file is not None:
        raise InvalidInput(f"--{(*ignored, 'token-file')[0]} goes with --transport http")


def _leave(*_: object) -> None:
    sys.exit(0)


def _leave_when_told(memory: CascadeMemory) -> None:
    """Close and end on a signal: the SDK waits for the next line on a thread that no exception ends."""

    def leave() -> None:
        try:
            memory.close()
        finally:
            os._exit(0)

    def told(*_: object) -> None:
        for one in _STOP:
            signal.signal(one, signal.SIG_IGN)
        threading.Thread(target=leave, name="cascade-memory-leave").start()

    for one in _STOP:
        signal.signal(one, told)


def _token(file: str | None) -> str | None:
    """Return the token; never an argument of the command, which every user of the machine can read."""
    if file is None:
        return os.environ.get(_TOKEN) or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from error
