"""Checks a score that a collector returned, before anything is made of it."""

from __future__ import annotations

import re
import time
from typing import NamedTuple, cast

from cascade_memory.capabilities.scores.score import SOURCES, Reading, Score
from cascade_memory.capabilities.scores.standing import Row
from cascade_memory.capabilities.scores.tables import LATEST, NAME_CHARS, PLATFORM_CHARS, TRACE_CHARS
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.digests import digest
from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import MAX_ID_CHARS, MAX_SOLUTION_CHARS, check_number, check_text, check_word
from cascade_memory.engine.door import Incoming
from cascade_memory.errors import InvalidInput

_AHEAD = 86_400.0  # seconds by which the clock of a platform may be ahead
_ID = re.compile("[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Checked(NamedTuple):
    """A score with its row."""

    score: Score
    row: Row
    correction: str | None  # its text


def checked(score: Score, reading: Reading, record: Incoming) -> Checked:
    """Return a score with the row that it becomes; raise ``InvalidInput`` if a part of it cannot be used."""
    correction = score.correction
    if correction is not None:
        correction = check_text(correction, "correction", MAX_SOLUTION_CHARS, allow_empty=True).strip() or None
    value, deleted = cast("object", score.value), cast("object", score.deleted)
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise InvalidInput(f"the value of a score must be a number, yes or no, a label or None, not {quoted(value)}")
    if not isinstance(deleted, bool):
        raise InvalidInput(f"deleted must be True or False, not {quoted(deleted)}")
    row = Row(
        platform=record.name(_line(score.platform, "platform", PLATFORM_CHARS), "platform"),
        feedback=record.name(_line(score.id, "id", MAX_ID_CHARS), "id"),
        name=record.name(_line(score.name, "name", NAME_CHARS), "name"),
        value=reading.number(value),
        judge=check_word(score.judge, tuple(SOURCES), "judge"),
        correction=None if correction is None else digest(correction),
        deleted=int(deleted),
        actor=check_actor(score.by),
        at=_moment(score.at),
        trace_id=None if score.trace_id is None else _id(score.trace_id, "trace_id"),
        span_id=None if score.span_id is None else _id(score.span_id, "span_id"),
    )
    return Checked(score, row, correction)


def _line(value: object, name: str, limit: int) -> str:
    text = check_text(value, name, limit)
    if not text.isprintable():
        raise InvalidInput(f"{name} must be one line without invisible characters, not {quoted(text)}")
    return text


def _moment(value: object) -> float:
    """Check a time. A later one than any that comes would make a version that counts for ever."""
    at = check_number(value, "at (seconds since 1970)", 0.0, LATEST)
    if at > time.time() + _AHEAD:
        raise InvalidInput(f"at (seconds since 1970) must not be more than a day from now, and is {at:.0f}")
    return at


def _id(value: object, name: str) -> str:
    """Check an id of a trace or a span: a text of another form might be anything, a key for example."""
    text = _line(value, name, TRACE_CHARS).strip()
    if not _ID.fullmatch(text):
        raise InvalidInput(f"{name} must be 32 hexadecimal digits, or 16 for a span, or a UUID, not {quoted(value)}")
    return text
