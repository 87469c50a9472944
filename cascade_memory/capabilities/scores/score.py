"""A score: what somebody said about a trace or a span, on whatever platform it was said, and what it means to a memory.

A reading says which names count, what a label is worth, and which source a kind of judge is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import check_number, exact
from cascade_memory.errors import InvalidInput

Judge: TypeAlias = Literal["human", "judge", "code", "agent"]  # a person, a model that judges, a program, the agent itself
# The sources that ``reward`` takes. Of an episode's scores, those of the most trusted source decide (``domain.trust.LEVELS``).
SOURCES: Mapping[str, str] = {"human": "human", "code": "env", "judge": "judge", "agent": "agent"}
_MOST = 10_000  # names in a mapping
_GOOD = (
    "pass",
    "passed",
    "yes",
    "true",
    "correct",
    "right",
    "good",
    "positive",
    "thumbs up",
    "up",
    "like",
    "\N{THUMBS UP SIGN}",
)
_BAD = (
    *("fail", "failed", "no", "false", "incorrect", "wrong", "bad", "negative", "thumbs down", "down", "dislike"),
    "\N{THUMBS DOWN SIGN}",
)
LABELS: Mapping[str, float] = {**dict.fromkeys(_GOOD, 1.0), **dict.fromkeys(_BAD, 0.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What every collector returns. The same ``id`` again, with a later ``at``, is the same score revised.

    >>> Score(platform="phoenix", id="7", name="correct", value=1.0, judge="human", at=1.7e9, trace_id="4bf9").deleted
    False
    """

    platform: str  # "langsmith", "langfuse", "phoenix", "otlp", or a name of your own
    id: str  # the platform's own id of the feedback
    name: str  # what was scored: "correctness", "user_thumb"
    value: float | bool | str | None  # a number, yes or no, a label; None if there is only a correction
    judge: Judge
    at: float  # when it was given or last changed, in seconds since 1970
    trace_id: str | None = None
    span_id: str | None = None
    by: str | None = None  # who gave it
    correction: str | None = None  # the right answer
    deleted: bool = False  # the score was withdrawn on its platform


@dataclass(frozen=True, slots=True)
class Unread:
    """What a collector yields in place of a score that it could not read; it then goes on with the next one.

    >>> Unread("line 7 of scores.jsonl is cut off").why
    'line 7 of scores.jsonl is cut off'
    """

    why: str  # in a sentence that names the place


class Reading:
    """How scores are read.

    >>> reading = Reading({"correctness": 1.0}, {"partly": 0.5})
    >>> reading.weight("correctness"), reading.weight("length")
    (1.0, None)
    >>> [reading.number(one) for one in (True, "Thumbs_Up", "partly", 7)]
    [1.0, 1.0, 0.5, None]
    """

    def __init__(self, weights: object = None, labels: object = None) -> None:
        self._weights = None if weights is None else _numbers(weights, "weights", "correctness", math.inf)
        given = {} if labels is None else _numbers(labels, "labels", "correct", 1.0)
        self._labels = {**LABELS, **{_plain(label): number for label, number in given.items()}}

    def weight(self, name: str) -> float | None:
        """Return how much the scores of a name count; None if they are ignored."""
        return 1.0 if self._weights is None else self._weights.get(name)

    def number(self, value: object) -> float | None:
        """Return the number from 0 to 1 that a value means; None if it means none."""
        if isinstance(value, str):
            return self._labels.get(_plain(value))
        number = float(value) if isinstance(value, bool) else exact(value)
        return float(number) + 0.0 if number is not None and 0 <= number <= 1 else None


def _plain(label: str) -> str:
    return " ".join(str.__str__(label)[:100].casefold().replace("_", " ").replace("-", " ").split())


def _numbers(given: object, name: str, example: str, most: float) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f'{name} must map names to numbers, such as {{"{example}": 1.0}}, not {quoted(given)}')
    found: dict[str, float] = {}
    for key, number in cast("Mapping[object, object]", given).items():
        if len(found) >= _MOST:
            raise InvalidInput(f"{name} must have at most {_MOST:,} names")
        if not isinstance(key, str):
            raise InvalidInput(f"a name in {name} must be a text, not {quoted(key)}")
        found[str.__str__(key)] = check_number(number, f"the number of {quoted(key)} in {name}", 0.0, min(most, 1e9))
    return found
