"""How much the outcomes of a source teach, and how many rewards of one actor teach within an hour."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from cascade_memory.domain.episode import SOURCES
from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import check_whole, check_word
from cascade_memory.errors import InvalidInput

# How much an outcome teaches, by who judged it: a test is right, a judge often, and a thumb may mean many things.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"env": 1.0, "host": 1.0, "human": 1.0, "judge": 0.8, "user": 0.5, "agent": 0.25}
)
# Outcomes of one actor that teach within an hour. What the application's own tests and people say has no cap.
CAPS: Mapping[str, int] = MappingProxyType({"judge": 1_000, "user": 100, "agent": 1_000})
HOUR, MINUTE = 3_600.0, 60.0  # seconds
_BURST = 10  # a tenth of the cap within a minute is a burst
_LEAST_BURST = 5


def weight_of(source: object) -> float:
    """Return how much an outcome of a source teaches; an unknown source (in an edited ledger) gets the smallest weight.

    >>> weight_of("human"), weight_of("user")
    (1.0, 0.5)
    """
    return WEIGHTS.get(source, min(WEIGHTS.values())) if isinstance(source, str) else min(WEIGHTS.values())


def check_caps(caps: object) -> Mapping[str, int]:
    """Return the cap of each source: how many outcomes of one actor teach within an hour. A cap of None means no cap.

    A source that is not named keeps its default cap.

    >>> dict(check_caps({"user": 20, "judge": None}))
    {'user': 20, 'agent': 1000}
    """
    if caps is None:
        return CAPS
    if not isinstance(caps, Mapping):
        raise InvalidInput(f'reward_caps must map sources to numbers, such as {{"user": 100}}, not {quoted(caps)}')
    given: dict[str, int | None] = {}
    for source, most in cast("Mapping[object, object]", caps).items():
        name = check_word(source, SOURCES, "a source in reward_caps")
        given[name] = None if most is None else check_whole(most, f"the cap of {name!r} (or None for no cap)")
    caps_of: dict[str, int | None] = {**CAPS, **given}
    return {source: most for source, most in caps_of.items() if most is not None}


def cap_of(caps: Mapping[str, int], source: str, channel: str | None) -> int | None:
    """Return the cap of a reward; None if there is none.

    The cap of a reward over MCP is never above the cap of the source "agent".

    >>> cap_of(CAPS, "host", None), cap_of(CAPS, "host", "mcp"), cap_of(CAPS, "user", "mcp")
    (None, 1000, 100)
    """
    of_door = caps.get("agent") if channel == "mcp" else None
    found = [cap for cap in (caps.get(source), of_door) if cap is not None]
    return min(found) if found else None


def burst_of(cap: int) -> int:
    """Return the number of rewards of one actor within a minute that raises an alarm; ``cap`` is the actor's cap for an hour.

    >>> burst_of(100), burst_of(20)
    (10, 5)
    """
    return max(cap // _BURST, _LEAST_BURST)
