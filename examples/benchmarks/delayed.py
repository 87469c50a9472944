"""A network of a given length on one machine: a proxy that hands everything on a little later, in both directions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def delayed(socket_path: str, seconds: float) -> Iterator[int]:
    """Listen on a port of this machine for a server on a Unix socket; yield the port."""
    loop, ports, started = asyncio.new_event_loop(), list[int](), threading.Event()

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            loop.call_later(seconds, writer.write, data)
        loop.call_later(seconds, writer.close)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket_path)
        await asyncio.gather(hand_on(reader, back), hand_on(there, writer), return_exceptions=True)

    async def listen() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(listen())
        loop.run_forever()

    threading.Thread(target=run, daemon=True).start()
    started.wait(10)
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(_end, loop)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.call_later(0.1, loop.stop)
