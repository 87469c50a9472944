"""How long does a recall over MCP take, compared with a tool that does nothing, and with the imports of a server?

    python examples/benchmarks/mcp_latency.py                             # 10k cases, stdio and HTTP; a fresh process
    python examples/benchmarks/mcp_latency.py --cases 500 --times 20 --processes 1

1. Sessions that stay open: ``recall_cases`` and a no-op tool of the same server are called in turn; medians, and their
   difference. The embedder is a table, so the time includes recording the episode, but no embedding.
2. A fresh stdio process for the first recall, as most clients of stdio start it, with all-MiniLM-L6-v2 and a folder of cases:
   the time from its start to its answer. The reference, run in turn with it, is a process that imports mcp, loads the model
   and embeds a text.

Rows go to ``results/mcp_latency.jsonl``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from numpy.typing import NDArray
from tqdm import tqdm

from cascade_memory import CascadeMemory
from cascade_memory.evaluation.synthetic import tickets

IMPORTING = """
import mcp.server, mcp.server.stdio
from cascade_memory.encoders.minilm import MiniLMEmbedder
MiniLMEmbedder().embed(["where is my parcel?"])
print("ready", flush=True)
"""


class TableOfVectors:
    """Replaces an embedder, so that its cost is not measured. Its vectors are the same in every process."""

    identity, dimension = "benchmark-table", 384

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors that depend on nothing but the text."""
        vectors = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dimension) for text in texts]
        array = np.array(vectors, np.float32).reshape(len(texts), self.dimension)
        return array / np.linalg.norm(array, axis=1, keepdims=True)


def serve(folder: Path, port: int | None) -> None:
    """Serve a folder, with one additional tool that does nothing."""
    from cascade_memory.mcp_server import build

    with CascadeMemory(folder, embedder=TableOfVectors()) as memory:
        server = build(memory)

        @server.tool(structured_output=False)
        async def nothing(query: str) -> str:
            """Do nothing."""
            return query

        if port is None:
            server.run("stdio")
            return
        import uvicorn

        from cascade_memory.mcp_server.connection import settings
        from cascade_memory.mcp_server.guard import Guard
        from cascade_memory.mcp_server.sdk import http_app

        guarded = Guard(http_app(server, host="127.0.0.1"), token=None, per_minute=0, alive=memory.stats)
        uvicorn.Server(settings(guarded, host="127.0.0.1", port=port)).run()


@contextlib.asynccontextmanager
async def session(transport: str, folder: Path) -> AsyncIterator[ClientSession]:
    """Start a server, and open one session to it that stays open."""
    command = [str(Path(__file__)), "--serve", str(folder)]
    if transport == "stdio":
        streams = stdio_client(StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ)))
        async with streams as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            yield client
        return
    from mcp.client import streamable_http

    connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, *command, "--port", str(port)])
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            await asyncio.sleep(0.1)
        async with connect(f"http://127.0.0.1:{port}/mcp") as (read, write, *_), ClientSession(read, write) as client:
            await client.initialize()
            yield client
    finally:
        process.terminate()
        process.wait()


async def kept(transport: str, folder: Path, times: int) -> dict[str, Any]:
    """Call both tools in turn within one session; return the row."""
    spent: dict[str, list[float]] = {"nothing": [], "recall_cases": []}
    queries = [task.query for task in tickets(times + 10, seed=1)]
    async with session(transport, folder) as client:
        for number, query in enumerate(tqdm(queries, desc=transport)):
            for tool, rows in spent.items():
                began = time.perf_counter()
                answer = await client.call_tool(tool, {"query": query})
                if number >= 10:  # the first ten only warm up
                    rows.append(1000 * (time.perf_counter() - began))
                if tool == "recall_cases":
                    assert "episode_id" in answer.content[0].text, answer  # type: ignore[union-attr]
    nothing, recalling = (np.median(rows) for rows in spent.values())
    return {"what": f"kept {transport}", "nothing_ms": nothing, "recall_ms": recalling, "above_ms": recalling - nothing}


async def first_recall(folder: Path) -> float:
    """Return the seconds from starting a server process to the answer of its first recall."""
    arguments = ["-m", "cascade_memory", "serve", "mcp", "--path", str(folder)]
    began = time.perf_counter()
    streams = stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ)))
    async with streams as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        answer = await client.call_tool("recall_cases", {"query": "where is my parcel?"})
        spent = time.perf_counter() - began
        assert "episode_id" in answer.content[0].text, answer  # type: ignore[union-attr]
    return spent


def imported() -> float:
    """Return the seconds from starting a process until it says that all is loaded. Its end is not measured."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", IMPORTING], stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return time.perf_counter() - began


async def fresh(folder: Path, processes: int) -> dict[str, Any]:
    """Start servers and reference processes in turn; return the row."""
    servers, references = [], []
    for _ in tqdm(range(processes), desc="fresh processes"):
        servers.append(await first_recall(folder))
        references.append(imported())
    server, reference = float(np.median(servers)), float(np.median(references))
    return {"what": "fresh stdio", "first_recall_s": server, "imports_and_model_s": reference, "ratio": server / reference}


async def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Fill the folders, measure, return the rows."""
    with tempfile.TemporaryDirectory() as work:
        table, real = Path(work, "table"), Path(work, "real")
        with CascadeMemory(table, embedder=TableOfVectors()) as memory:
            memory.add([(task.query, task.solution) for task in tickets(options.cases)])
        with CascadeMemory(real) as memory:
            memory.add([(task.query, task.solution) for task in tickets(min(options.cases, 1_000))])
        rows = [await kept(transport, table, options.times) for transport in ("stdio", "http")]
        return [*rows, await fresh(real, options.processes)]


def main() -> None:
    """Measure, store the rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=300, help="calls of each tool")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/mcp_latency.jsonl"))
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.port)
        return
    rows = asyncio.run(measure(options))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"cases": options.cases, **row}) + "\n" for row in rows)
    for row in rows[:2]:
        print(
            f"{row['what']:11}  a tool that does nothing {row['nothing_ms']:5.1f} ms   "
            f"recall_cases {row['recall_ms']:5.1f} ms   above it {row['above_ms']:5.1f} ms"
        )
    row = rows[2]
    print(
        f"{row['what']:11}  first recall {row['first_recall_s']:.2f} s   "
        f"imports and model alone {row['imports_and_model_s']:.2f} s   ratio {row['ratio']:.2f}"
    )


if __name__ == "__main__":
    main()
