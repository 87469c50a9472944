"""What ``cascade-memory serve mcp --transport http`` answers beside MCP: the webhooks, if they have a secret."""

from __future__ import annotations

import os
from typing import Any

from cascade_memory.capabilities.scores.webhook import Webhook

SECRET = "CASCADE_MEMORY_WEBHOOK_SECRET"
_PLATFORMS = ("webhook", "langsmith", "langfuse")


def routes(memory: Any) -> dict[str, Webhook]:
    """Return the applications by their paths; none if the environment names no secret.

    >>> routes(None)
    {}
    """
    secret = os.environ.get(SECRET, "").strip()
    if not secret:
        return {}
    return {f"/scores/{platform}": Webhook(memory, secret=secret, platform=platform) for platform in _PLATFORMS}
