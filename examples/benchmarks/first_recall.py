"""How long a new process waits for its first recall, and what for: imports, opening, the model, the recall itself.

``python examples/benchmarks/first_recall.py`` starts a process several times on a folder of cases, and prints the medians. Then
it does the same with an MCP server, which loads its model on a thread before the handshake, and with a FastAPI application that
calls ``warm()`` when it starts. Needs fastapi, httpx and the extras "local" and "mcp".
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from cascade_memory import CascadeMemory

PROGRAM = """
import json, sys, time
began = time.perf_counter()
from cascade_memory import CascadeMemory
imported = time.perf_counter()
memory = CascadeMemory(sys.argv[1])
opened = time.perf_counter()
if sys.argv[2] == "apart":
    memory.warm()
warmed = time.perf_counter()
recall = memory.recall("how do I reset my router?")
done = time.perf_counter()
assert recall.cases, recall.error
steps = (began, imported, opened, warmed, done)
print(json.dumps([later - before for before, later in zip(steps, steps[1:])]))
"""
IN_FASTAPI = """
import asyncio, json, sys, time
import httpx
from fastapi import FastAPI
from cascade_memory import CascadeMemory

async def main():
    with CascadeMemory(sys.argv[1]) as memory:
        memory.warm()
        app = FastAPI()

        @app.post("/ask")
        async def ask(task: str) -> str:
            recall = await memory.arecall(task)
            assert recall.cases, recall.error
            return recall.render()

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
            began = time.perf_counter()
            answer = await client.post("/ask", params={"task": "how do I reset my router?"})
            assert answer.status_code == 200
            print(json.dumps([time.perf_counter() - began]))

asyncio.run(main())
"""
STEPS = ("import cascade_memory", "open the folder", "load the model and the cases (warm)", "recall")


def started(program: str, folder: Path, times: int, *how: str) -> list[list[float]]:
    """Start a process several times; return the seconds of each step of each process."""
    command = [sys.executable, "-c", program, str(folder), *how]
    return [
        json.loads(subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout)
        for _ in range(times)
    ]


async def over_mcp(folder: Path) -> float:
    """Start a server as clients do; return the seconds of its first recall, right after the handshake."""
    arguments = ["-m", "cascade_memory", "serve", "mcp", "--path", str(folder)]
    streams = stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ)))
    async with streams as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        began = time.perf_counter()
        answer = await client.call_tool("recall_cases", {"query": "how do I reset my router?"})
        spent = time.perf_counter() - began
        assert "hold the button" in answer.content[0].text, answer  # type: ignore[union-attr]
    return spent


def main() -> None:
    """Print a line for each step, and one for the whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "memory"
        with CascadeMemory(folder) as memory:
            memory.add("reset the router", "hold the button for 10 s")
            memory.add([(f"task number {i} about topic {i % 20}", f"solution {i % 20}") for i in range(options.cases - 1)])
        started(PROGRAM, folder, 1, "apart")  # from here on, the files are in the system's cache
        apart = started(PROGRAM, folder, options.times, "apart")
        whole = started(PROGRAM, folder, options.times, "at once")
        mcp = [asyncio.run(over_mcp(folder)) for _ in range(options.times)]
        fastapi = started(IN_FASTAPI, folder, options.times)
    print(f"A new process, {options.cases:,} cases, medians of {options.times}:")
    for place, step in enumerate(STEPS):
        print(f"{1_000 * median(one[place] for one in apart):7.0f} ms  {step}")
    print(f"{1_000 * median(sum(one) for one in whole):7.0f} ms  from the first import to the first recall, without warm()")
    print(f"{1_000 * median(mcp):7.0f} ms  first recall over MCP (stdio), right after the handshake")
    print(f"{1_000 * median(one[0] for one in fastapi):7.0f} ms  first request of a FastAPI application that has called warm()")


if __name__ == "__main__":
    main()
