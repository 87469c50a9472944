"""MCP servers of search tools, over HTTP."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from mcp_clients import free_port


@contextlib.contextmanager
def over_http(*command: str) -> Iterator[str]:
    """Start a server on a port of this machine; yield its URL."""
    port = free_port()
    process = subprocess.Popen([sys.executable, *command, "--port", str(port)], env=dict(os.environ))
    try:
        for _ in range(600):
            assert process.poll() is None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            except urllib.error.HTTPError:
                break  # it answers
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()
