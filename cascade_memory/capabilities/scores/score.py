"""A score: what somebody said about a trace or a span, on whatever platform it was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Judge: TypeAlias = Literal["human", "judge", "code", "agent"]  # a person, a model that judges, a program, the agent itself


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
