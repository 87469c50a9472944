"""Runs the server until it is stopped: on standard input and output, or on HTTP."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.domain.validation import check_whole
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.clients import Tokens, check_tokens
from cascade_memory.mcp_server.guard import LOOPBACK, Guard
from cascade_memory.serving.asgi import App, Receive, Scope, Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The address, the tokens and the rate limit of the server on HTTP; for other machines a token is required."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: Tokens = field(default=None, repr=False)
    per_minute: int = 600

    def __post_init__(self) -> None:
        check_whole(self.port, "a port", 1, 65_535)
        check_whole(self.per_minute, "rate")
        if self.host not in LOOPBACK and not self.token:
            raise InvalidInput(
                f"{self.host} can be reached from other machines: set a token with --token-file, or in the environment "
                "variable CASCADE_MEMORY_TOKEN; or listen on 127.0.0.1"
            )
        check_tokens(self.token)


def serve(
    memory: CascadeMemory,
    *,
    read_only: bool,
    trust_agent_rewards: bool,
    listening: Listening | None,
    actor: str | None = None,
    beside: Mapping[str, App] | None = None,
) -> None:
    """Serve a memory on standard input and output, or, with ``listening``, on HTTP; return when the server is stopped.

    ``actor`` is the name that is recorded for clients without a name of their own. ``beside`` has applications that answer on
    HTTP at paths of their own; each checks by itself who may ask.
    """
    # The model loads on a thread while the SDK, which takes longer, is imported: a first recall need not wait for it.
    memory.warm(wait=False)
    from cascade_memory.mcp_server import build

    host = "127.0.0.1" if listening is None else listening.host
    server = build(memory, read_only=read_only, trust_agent_rewards=trust_agent_rewards, host=host, actor=actor)
    if listening is None:
        import anyio

        from cascade_memory.mcp_server.lines import on_standard_streams

        try:
            anyio.run(on_standard_streams, server)
        except Exception as error:
            if not _client_left(error):
                raise
        return
    from cascade_memory.mcp_server.connection import Server, settings
    from cascade_memory.mcp_server.sdk import http_app

    guarded = Guard(
        http_app(server, host=host),
        token=listening.token,
        per_minute=listening.per_minute,
        alive=lambda: memory.episodes.knows("any"),  # one query to the ledger
    )
    config = settings(with_others(guarded, beside or {}), host=host, port=listening.port)
    bound = config.bind_socket()  # if the port is in use, this prints an error and ends the process
    sys.stderr.write(f"cascade-memory: http://{host}:{listening.port}/mcp ({memory!r}); stop with Ctrl-C\n")
    Server(config).run(sockets=[bound])


def with_others(app: App, others: Mapping[str, App]) -> App:
    """Return an application that leaves some paths to others."""

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = others.get(scope["path"], app) if scope["type"] == "http" else app
        await chosen(scope, receive, send)

    return either if others else app


def _client_left(error: BaseException) -> bool:
    """Say whether an error means only that the client disconnected before it had all its answers."""
    import anyio

    if isinstance(error, (BrokenPipeError, anyio.ClosedResourceError, anyio.BrokenResourceError)):
        return True
    inner = getattr(error, "exceptions", ())  # the errors in an exception group
    return bool(inner) and all(_client_left(one) for one in inner)
