"""Trust: how far each source is trusted, and the channel through which something came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cascade_memory.domain.episode import SOURCES
from cascade_memory.domain.validation import check_word

# The greater, the more it counts. Of two sources with the same level, neither is better than the other.
LEVELS: Mapping[str, int] = {"agent": 0, "user": 1, "judge": 2, "host": 3, "env": 3, "human": 4}
GREATEST = max(LEVELS.values())

CHANNELS = ("python", "langchain", "llama_index", "mcp", "cli", "inspector", "import", "scores")
REVISED = ("scores",)  # what came through these may be withdrawn later, so what it replaces is kept


class ByWhom(NamedTuple):
    """Who did something, as the host said, and the channel through which it came."""

    actor: str | None = None
    channel: str | None = None


NOBODY = ByWhom()


def level(source: str) -> int:
    """Return the trust level of a source: the higher it is, the more the source is trusted.

    >>> level("agent") < level("user") < level("judge") < level("env") == level("host") < level("human")
    True
    """
    return LEVELS[source]


def named(trust: int) -> str:
    """Return the name of a level, as ``min_trust`` takes it: the first of the sources that have this level.

    >>> named(0), named(3)
    ('agent', 'host')
    """
    return next((source for source, of_source in LEVELS.items() if of_source == trust), str(trust))


def check_min_trust(source: object, name: str = "min_trust") -> int | None:
    """Check the name of the least trusted source that is accepted, and return its level; None if every source is accepted.

    >>> check_min_trust("judge"), check_min_trust(None)
    (2, None)
    """
    if source is None:
        return None
    return LEVELS[check_word(source, SOURCES, name)]


def check_channel(channel: object) -> str:
    """Check the name of a channel through which something came; None means "python".

    >>> check_channel("mcp"), check_channel(None)
    ('mcp', 'python')
    """
    if channel is None:
        return CHANNELS[0]
    return check_word(channel, CHANNELS, "channel")
