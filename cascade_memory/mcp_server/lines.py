"""Serves on standard input and output; also answers lines that the SDK cannot read, so that the client need not wait."""

from __future__ import annotations

import contextlib
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.validation import GREATEST, check_id, check_whole
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.sdk import inner, refusal

_PARSE_ERROR = -32_700  # of JSON-RPC
_UNREADABLE = (
    "a request must be JSON-RPC on one line, not nested too deeply, and without halves of characters (lone surrogates)"
)


async def on_standard_streams(server: Any) -> None:
    """Serve the client on standard input and output until it disconnects."""
    async with stdio_server() as (reading, writing):
        await converse(server, reading, writing)


async def converse(server: Any, reading: Any, writing: Any) -> None:
    """Serve one client until it disconnects; ``reading`` yields its messages, and an error for each unreadable line."""
    to_server, from_client = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_pass_on, reading, writing, to_server)
        talking = inner(server)
        await talking.run(from_client, writing, talking.create_initialization_options())


async def _pass_on(reading: Any, writing: Any, to_server: Any) -> None:
    async with reading, to_server:
        async for one in reading:
            if isinstance(one, Exception):
                await writing.send(refusal(_id_in(one), _PARSE_ERROR, _UNREADABLE))
            await to_server.send(one)  # also an error, which it logs


def _id_in(error: Exception) -> str | int | None:
    """Find the id of a request in the error that was raised when the request was read; None if it has no usable id."""
    line = error.errors()[0]["input"] if isinstance(error, ValidationError) else None
    request = parsed(line)
    found = cast("dict[str, object]", request).get("id") if isinstance(request, dict) else None
    with contextlib.suppress(InvalidInput):
        return check_id(found, "id") if isinstance(found, str) else check_whole(found, "id", -GREATEST)
    return None
