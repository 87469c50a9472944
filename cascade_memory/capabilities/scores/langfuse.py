"""Reads the scores of Langfuse: ``GET /api/public/v3/scores``, which self-hosted servers have from version 3.179."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from cascade_memory.capabilities.scores.asking import Platform, address, setting
from cascade_memory.capabilities.scores.collecting import LAG, batches, by_cursor, in_order, scores, with_withdrawn
from cascade_memory.capabilities.scores.fields import Fields, written
from cascade_memory.capabilities.scores.score import Judge, Score, Unread

_URL, _PAGE, _IDS = "https://cloud.langfuse.com", 100, 50
# "API" is what a program of yours sent: it may be the thumb of a user, so it is trusted no more than a judge.
_JUDGES: dict[str, Judge] = {"ANNOTATION": "human", "EVAL": "judge", "API": "judge"}
_TYPES = {"NUMERIC": "a number", "BOOLEAN": "true or false", "CATEGORICAL": "a text", "TEXT": "a text", "CORRECTION": ""}


def collect(*, since: float = 0.0, url: str | None = None) -> Iterator[Score | Unread]:
    """Yield the scores of a project that were given after a time, a quarter of an hour before it included: reads may lag.

    Scores of sessions and of experiments are left out. The keys are in ``LANGFUSE_PUBLIC_KEY`` and ``LANGFUSE_SECRET_KEY``.

    >>> list(collect(url="no address"))
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: the address of Langfuse must look like https://host, without a key or a password in it
    """
    with _platform(url) as platform:
        yield from in_order(scores(_pages(platform, fromTimestamp=written(since - LAG)), score_of))


def check(known: Sequence[Score], *, url: str | None = None) -> Iterator[Score | Unread]:
    """Read known scores again: yield each as it is now, and those that were deleted with ``deleted=True``.

    >>> list(check([]))
    []
    """
    known = [one for one in known if "," not in one.id]  # ids are asked for with commas between them
    if known:
        with _platform(url) as platform:
            rows = (row for some in batches(known, _IDS) for row in _pages(platform, id=",".join(one.id for one in some)))
            yield from with_withdrawn(platform, known, rows, score_of)


def _platform(url: str | None) -> Platform:
    where = address(url or setting("LANGFUSE_HOST", "LANGFUSE_BASE_URL", default=_URL), of="Langfuse", secret=True)
    keys = base64.b64encode(f"{setting('LANGFUSE_PUBLIC_KEY')}:{setting('LANGFUSE_SECRET_KEY')}".encode()).decode()
    return Platform("Langfuse", where, headers={"authorization": f"Basic {keys}"}, keys="LANGFUSE_SECRET_KEY")


def _pages(platform: Platform, **asked: object) -> Iterator[Fields]:
    asked = {"limit": _PAGE, "fields": "subject,annotation", **asked}
    return by_cursor(platform, "/api/public/v3/scores", lambda page: page.inner("meta").text_or_none("cursor"), **asked)


def score_of(row: Fields) -> Score | None:
    """Return the score in an item of an answer; None if it is not about a trace, or an empty correction.

    >>> item = {"id": "s", "name": "thumb", "dataType": "BOOLEAN", "value": True, "source": "API"}
    >>> item |= {"updatedAt": "2026-01-01T00:00:00Z", "subject": {"kind": "trace", "id": "4bf9"}}
    >>> score_of(Fields("Langfuse", item)).trace_id
    '4bf9'
    """
    subject, kind = row.inner("subject"), row.one_of("dataType", _TYPES)
    about = subject.one_of("kind", {"trace": "id", "observation": "traceId", "session": None, "experiment": None})
    correction = None if kind else row.text_or_none("value")
    if about is None or not (kind or correction):
        return None
    return Score(
        platform="langfuse",
        id=row.id("id"),
        name=row.id("name"),
        value=row.typed("value", kind) if kind else None,
        judge=row.one_of("source", _JUDGES),
        at=row.moment("updatedAt"),
        trace_id=subject.id(about),
        span_id=None if about == "id" else subject.id("id"),
        by=row.id_or_none("authorUserId"),
        correction=correction,
    )
