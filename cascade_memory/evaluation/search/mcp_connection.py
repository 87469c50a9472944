"""A connection to an MCP server, in a thread of its own, so that a server that hangs or dies does not stop the program."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import os
import re
import shlex
import sys
import threading
from contextlib import AsyncExitStack
from typing import Any

from cascade_memory.errors import InvalidInput, MissingExtra

_MOST_PAGES = 10  # of a server's list of tools
_GRACE = 5.0  # seconds for the end of a connection
_SECRETS = ("OPENAI_API_KEY",)  # of our model: no search server needs it


class ServerFailed(Exception):
    """The server did not start, did not answer in time, sent an error, or is gone."""


class Connection:
    """Starts a server (a command) or connects to one (a URL), and lists and calls its tools, each within a limit of time."""

    def __init__(self, server: str, *, seconds: float) -> None:
        self._server, self._seconds = server, seconds
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Any = None
        self._ending: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="mcp-search", daemon=True)
        self._thread.start()
        try:
            self._ready.result(seconds)
        except BaseException as error:
            self.close()
            if isinstance(error, (InvalidInput, MissingExtra, KeyboardInterrupt)):
                raise
            raise ServerFailed(f"the search server {called(server)} did not start: {_why(error, seconds)}") from error

    def tools(self) -> list[Any]:
        """Return the tools that the server lists."""
        return self._wait(self._tools(), self._seconds)

    def call(self, tool: str, arguments: dict[str, Any], *, seconds: float) -> Any:
        """Call a tool; return the result as the SDK gives it."""
        return self._wait(self._session.call_tool(tool, arguments), seconds)

    def close(self) -> None:
        """End the connection, and the server's process if the connection started it."""
        loop, ending = self._loop, self._ending
        if loop is not None and ending is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(ending.set)
        self._thread.join(_GRACE)

    async def _tools(self) -> list[Any]:
        found, cursor = [], None
        for _ in range(_MOST_PAGES):
            page = await (self._session.list_tools() if cursor is None else self._session.list_tools(cursor))
            found += page.tools
            cursor = getattr(page, "nextCursor", None) or getattr(page, "next_cursor", None)
            if not cursor:
                break
        return found

    def _wait(self, request: Any, seconds: float) -> Any:
        """Run a request in the thread of the connection, and wait for its result."""
        loop = self._loop
        if loop is None or not self._thread.is_alive():
            request.close()
            raise ServerFailed(f"the search server {called(self._server)} is gone")

        async def within() -> Any:
            return await asyncio.wait_for(request, seconds)

        waiting = asyncio.run_coroutine_threadsafe(within(), loop)
        try:
            return waiting.result(seconds + _GRACE)
        except (Exception, concurrent.futures.CancelledError) as error:
            waiting.cancel()
            raise ServerFailed(f"the search failed: {_why(error, seconds)}") from error

    def _run(self) -> None:
        try:
            asyncio.run(self._hold())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits for us
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop = None

    async def _hold(self) -> None:
        """Open the connection, and keep it open until ``close``; the SDK requires that one task opens and closes it."""
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(_streams(self._server))
            client: Any = importlib.import_module("mcp").ClientSession
            self._session = await stack.enter_async_context(client(streams[0], streams[1]))
            await asyncio.wait_for(self._session.initialize(), self._seconds)
            self._ready.set_result(None)
            await self._ending.wait()


def _streams(server: str) -> Any:
    """Return a context manager that opens the streams to a server."""
    try:
        importlib.import_module("mcp")
    except ModuleNotFoundError as error:
        raise MissingExtra('a search server needs the extra "mcp": pip install "cascade-memory[mcp]"') from error
    if is_url(server):
        over_http: Any = importlib.import_module("mcp.client.streamable_http")
        # The SDK renamed it; the name that its newest version has comes first.
        return (getattr(over_http, "streamable_http_client", None) or over_http.streamablehttp_client)(server)
    stdio: Any = importlib.import_module("mcp.client.stdio")
    command, *arguments = words_of_command(server)
    environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    # Its messages go to the process's own standard error: what replaces that in a notebook is no file.
    log: Any = sys.__stderr__ or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it is open for as long as the server runs
    return stdio.stdio_client(stdio.StdioServerParameters(command=command, args=arguments, env=environment), errlog=log)


def is_url(server: str) -> bool:
    """Say whether a server is named by its URL, and not by a command.

    >>> is_url("http://127.0.0.1:9000/mcp"), is_url("python server.py")
    (True, False)
    """
    return server.startswith(("http://", "https://"))


def words_of_command(server: str) -> list[str]:
    """Split a command as a shell would; on Windows a backslash is part of a path.

    >>> words_of_command("python 'my server.py' --fast")
    ['python', 'my server.py', '--fast']
    """
    lexer = shlex.shlex(server, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    if os.name == "nt":
        lexer.escape = ""
    try:
        found = list(lexer)
    except ValueError as error:
        raise InvalidInput(f"the command of the search server cannot be read: {error}") from error
    if not found:
        raise InvalidInput("--search needs a URL or a command that starts an MCP server on stdio")
    return found


def called(server: str) -> str:
    """Name a server in a message or a row, without what may be a password or a key.

    >>> called("https://me:secret@search.example.org/mcp/sk-1?key=1"), called("env KEY=sk-1 python server.py --key 1")
    ('https://search.example.org', 'python server.py')
    """
    if is_url(server):
        scheme, _, rest = server.partition("://")
        return f"{scheme}://{re.split('[/?#]', rest)[0].rpartition('@')[2]}"
    words = [word for word in words_of_command(server) if "=" not in word and word != "env"]
    if "-c" in words[:3]:
        return words[0]  # what follows is code
    plain = [word for word in words[:4] if not word.startswith("-") or word == "-m"]
    return " ".join(plain[: 3 if "-m" in plain else 2])


def _why(error: BaseException, seconds: float) -> str:
    """Describe a failure in a few words; of a group of exceptions, which come from the SDK's tasks, describe the first."""
    for _ in range(10):
        inner = getattr(error, "exceptions", None)
        if not inner:
            break
        error = inner[0]
    if isinstance(error, (asyncio.TimeoutError, concurrent.futures.TimeoutError, TimeoutError)):
        return f"no answer within {seconds:g} seconds"
    return f"{type(error).__name__}: {str(error)[:300]}"
