"""Trust: how far each source is trusted, through which channel something came, and how much the outcomes of a source teach.

How many rewards of one actor teach within an hour is limited. ``Vigilance`` says which measures protect a memory against
actors who lie. These measures concern only cases and outcomes whose actor the host names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.episode import SOURCES
from cascade_memory.domain.validation import check_whole, check_word
from cascade_memory.errors import InvalidInput

# The greater, the more it counts. Of two sources with the same level, neither is better than the other.
LEVELS: Mapping[str, int] = {"agent": 0, "user": 1, "judge": 2, "host": 3, "env": 3, "human": 4}
GREATEST = max(LEVELS.values())
CHANNELS = ("python", "langchain", "llama_index", "mcp", "cli", "inspector", "import", "scores")
REVISED = ("scores",)  # what came through these may be withdrawn later, so what it replaces is kept
# How much an outcome teaches, by who judged it: a test is right, a judge often, and a thumb may mean many things.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"env": 1.0, "host": 1.0, "human": 1.0, "judge": 0.8, "user": 0.5, "agent": 0.25}
)
# Outcomes of one actor that teach within an hour. What the application's own tests and people say has no cap.
CAPS: Mapping[str, int] = MappingProxyType({"judge": 1_000, "user": 100, "agent": 1_000})
HOUR, MINUTE = 3_600.0, 60.0  # seconds
_BURST = 10  # a tenth of the cap within a minute is a burst
_LEAST_BURST = 5


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


@dataclass(frozen=True, slots=True)
class Vigilance:
    """The measures that are in force; by default all.

    Args:
        records: Keep a record of each actor from what others report about its cases, and stop showing the cases of an actor
            whose record is bad beyond doubt.
        probation: While the cases of newcomers fail, show the cases of all actors without a good record seldom.
        reports: Do not learn from the outcomes of an actor who reports the opposite of what happened.
        fair_lessons: Learn no more than a fair share from an actor without a good record.

    >>> Vigilance(probation=False)
    Vigilance(records=True, probation=False, reports=True, fair_lessons=True)
    """

    records: bool = True
    probation: bool = True
    reports: bool = True
    fair_lessons: bool = True

    def __bool__(self) -> bool:
        """Whether any measure is in force."""
        return self.records or self.probation or self.reports or self.fair_lessons


OFF = Vigilance(records=False, probation=False, reports=False, fair_lessons=False)
