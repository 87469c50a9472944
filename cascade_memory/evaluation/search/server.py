"""An MCP server that searches the passages of a file: ``python -m cascade_memory.evaluation.search.server corpus.jsonl``.

It speaks over stdio, or with ``--port`` over HTTP at ``http://127.0.0.1:PORT/mcp``, to this machine only.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench.stage import best_embedder
from cascade_memory.evaluation.search.local import RETRIEVALS, LocalSearch
from cascade_memory.evaluation.search.questions import read_passages
from cascade_memory.evaluation.search.tool import PassageTool, SearchTool


def made(name: str, port: int | None) -> tuple[Any, Callable[[], None]]:
    """Make an MCP server without tools, with any version of the SDK; return it, and the function that runs it."""
    second = True
    try:
        kind: Any = importlib.import_module("mcp.server.mcpserver").MCPServer
    except ModuleNotFoundError:
        second = False
        try:
            kind = importlib.import_module("mcp.server.fastmcp").FastMCP
        except ModuleNotFoundError as error:
            raise MissingExtra('a search server needs the extra "mcp": pip install "cascade-memory[mcp]"') from error
    transport = "stdio" if port is None else "streamable-http"
    listening = {} if port is None else {"host": "127.0.0.1", "port": port, "stateless_http": True, "json_response": True}
    server = kind(name, log_level="ERROR", **({} if second else listening))
    return server, lambda: server.run(transport, **(listening if second else {}))


def serve(tool: SearchTool, *, port: int | None = None) -> None:
    """Serve a search tool, over stdio or over HTTP on a port of this machine, until the client or the user ends it."""
    server, run = made("passages", port)

    def search(query: str) -> str:
        return tool.search(query).text

    server.tool(name=tool.name, description=tool.description)(search)
    run()


def main() -> None:
    """Read the command line, index the passages, and serve them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="JSON lines with title and text")
    parser.add_argument("--retrieval", choices=RETRIEVALS, default="bm25", help="how passages are found (default bm25)")
    parser.add_argument("--kept-in", type=Path, metavar="DIR", help="the folder that keeps the vectors of the passages")
    parser.add_argument("--port", type=int, help="serve over HTTP on this port, instead of over stdio")
    options = parser.parse_args()
    try:
        passages = read_passages(options.corpus)
        found = LocalSearch(passages, options.retrieval, embedder=best_embedder, kept_in=options.kept_in)
        serve(PassageTool(found), port=options.port)
    except (InvalidInput, MissingExtra) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
