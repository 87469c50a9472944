"""The HTTP connections of a server: those of uvicorn, with a time limit for each request and a limit on their number."""

from __future__ import annotations

import asyncio
import errno
import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cascade_memory.serving.asgi import App, Receive, Scope, Send
from cascade_memory.serving.crowd import VOUCH, Crowd, room

HEAD_SECONDS = 10.0  # for the head of a request; counted from connecting, on a reused connection from the first byte
BODY_SECONDS = 35.0  # for the body: what is behind answers before that it is too slow, then the connection is closed
READ_SECONDS = 30.0  # for some 48 KiB of an answer that a client does not take: it would count as being answered for ever
_SILENCE = 60.0  # seconds before the same warning is repeated
_GRACE = 5  # seconds in which running requests may finish when the server stops


def settings(app: App, **options: Any) -> uvicorn.Config:
    """Configure uvicorn to serve an application to clients that cannot be trusted; the options are uvicorn's."""
    connections, at_once = room()
    chosen: dict[str, Any] = {"timeout_graceful_shutdown": _GRACE, **options}
    protocol: Any = functools.partial(Connection, Crowd(connections))
    return uvicorn.Config(
        app,
        log_config=None,  # its lines go where those of the process go
        log_level="warning",
        proxy_headers=False,
        http=protocol,
        ws="none",
        loop="asyncio",  # if file descriptors run out, this loop waits a second and goes on
        backlog=at_once,
        **chosen,
    )


class Server(uvicorn.Server):
    """A uvicorn server that keeps running if file descriptors run out.

    It reports that itself: logging might open a file and fail, which would end the event loop.
    """

    _warned_at = -math.inf

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Start, and handle the errors of the event loop."""
        asyncio.get_running_loop().set_exception_handler(self._complain)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        """Stop without waiting for clients that do not read, and leave no connection and no descriptor open."""
        for one in list(self.server_state.connections):
            if isinstance(one, Connection) and one.unread:
                one.leave()
        await super().shutdown(sockets)
        for one in list(self.server_state.connections):
            one.transport.abort()
        await asyncio.sleep(0)  # in which they are closed

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if getattr(context.get("exception"), "errno", None) not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() - self._warned_at > _SILENCE:
            self._warned_at = loop.time()
            sys.stderr.write("cascade-memory: no file descriptors are left for new connections; going on when some are free\n")


class Connection(H11Protocol):
    """A connection that closes if a request arrives too slowly or an answer is not read; uvicorn would wait without limit."""

    def __init__(self, crowd: Crowd, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._crowd = crowd
        self._awaited: str | None = None  # the part of a request that has not arrived yet
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.app: Any = functools.partial(_vouched, self.app, functools.partial(crowd.vouch, self))

    @property
    def busy(self) -> bool:
        """True while a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]

    @property
    def unread(self) -> bool:
        """True while an answer waits for the client to read."""
        return self._unread is not None

    def leave(self) -> None:
        """Close at once, even if not everything has been sent."""
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for("head")
        self._crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        """Handle received data, and set the deadline for the part that has not arrived yet."""
        super().data_received(data)
        state: object = self.conn.their_state
        self._wait_for("head" if state is h11.IDLE else "body" if state is h11.SEND_BODY else None)

    def on_response_complete(self) -> None:
        """Go on to the next request, which may have arrived already; uvicorn closes an idle connection soon."""
        super().on_response_complete()
        state: object = self.conn.their_state
        self._wait_for("body" if state is h11.SEND_BODY else None)

    def pause_writing(self) -> None:
        """Pause the answer, and give the client some time to take what was sent."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.leave)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._has_read()

    def _has_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection is closed."""
        self._wait_for(None)
        self._has_read()
        self._crowd.forget(self)
        super().connection_lost(exc)

    def _wait_for(self, part: str | None) -> None:
        if part == self._awaited:
            return
        self._awaited = part
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if part is not None:
            self._deadline = self.loop.call_later(HEAD_SECONDS if part == "head" else BODY_SECONDS, self.leave)


async def _vouched(app: App, vouch: Callable[[], bool], scope: Scope, receive: Receive, send: Send) -> None:
    scope[VOUCH] = vouch
    await app(scope, receive, send)
