"""An MCP server over stdio with one tool, ``search``. It searches the passages of the file named on the command line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from passages import Passages

server = FastMCP("passages", log_level="ERROR")
passages = Passages(Path(sys.argv[1]))


@server.tool()
def search(query: str) -> str:
    """Search an encyclopedia; a name finds its article. Returns the three best passages as JSON, each with title and text."""
    return json.dumps([asdict(passage) for passage in passages.search(query)], ensure_ascii=False)


if __name__ == "__main__":
    server.run("stdio")
