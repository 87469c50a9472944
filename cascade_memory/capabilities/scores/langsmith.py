"""Reads the feedback of LangSmith: ``GET /feedback``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from cascade_memory.capabilities.scores.asking import Platform, address, setting
from cascade_memory.capabilities.scores.collecting import LAG, by_offset, by_offset_of, in_order, scores, with_withdrawn
from cascade_memory.capabilities.scores.fields import Fields, written
from cascade_memory.capabilities.scores.score import Judge, Score, Unread

_URL, _PAGE, _RUNS = "https://api.smith.langchain.com", 100, 50
# "api" is what a program of yours sent: it may be the thumb of a user, so it is trusted no more than a judge.
_JUDGES: dict[str, Judge] = {"app": "human", "model": "judge", "auto_eval": "judge", "api": "judge"}


def collect(*, since: float = 0.0, url: str | None = None) -> Iterator[Score | Unread]:
    """Yield the feedback of a workspace that was created after a time, a quarter of an hour before it included.

    Feedback of a whole project (without a run) is left out. The key is in ``LANGSMITH_API_KEY``.

    >>> list(collect(url="no address"))
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: the address of LangSmith must look like https://host, without a key or a password in it
    """
    with _platform(url) as platform:
        window = {"min_created_at": written(since - LAG), "max_created_at": written(time.time())}
        yield from in_order(scores(by_offset(platform, "/feedback", _PAGE, **window), score_of))


def check(known: Sequence[Score], *, url: str | None = None) -> Iterator[Score | Unread]:
    """Read the feedback of the runs of known scores again: yield all as it is now, and what was deleted with ``deleted=True``.

    >>> list(check([]))
    []
    """
    known = [one for one in known if one.span_id is not None]
    if known:
        runs = dict.fromkeys(str(one.span_id) for one in known)
        with _platform(url) as platform:
            rows = by_offset_of(platform, "/feedback", _PAGE, "run", runs, _RUNS)
            yield from with_withdrawn(platform, known, rows, score_of)


def _platform(url: str | None) -> Platform:
    where = address(url or setting("LANGSMITH_ENDPOINT", default=_URL), of="LangSmith", secret=True)
    workspace = setting("LANGSMITH_WORKSPACE_ID", default="")
    headers = {"x-api-key": setting("LANGSMITH_API_KEY"), **({"x-tenant-id": workspace} if workspace else {})}
    return Platform("LangSmith", where, headers=headers, keys="LANGSMITH_API_KEY")


def score_of(row: Fields) -> Score | None:
    """Return the score in an item of feedback; None if there is nothing to learn from it.

    >>> at = "2026-01-01T00:00:00"
    >>> item = {"id": "f", "key": "thumb", "score": 1, "run_id": "r", "trace_id": "t", "modified_at": at}
    >>> score_of(Fields("LangSmith", item)).value
    1.0
    """
    run, trace, source = row.id_or_none("run_id"), row.id_or_none("trace_id"), row.inner("feedback_source")
    value, correction = row.value("score" if row.has("score") else "value"), row.correction("correction")
    if (run is None and trace is None) or (value is None and correction is None):
        return None
    return Score(
        platform="langsmith",
        id=row.id("id"),
        name=row.id("key"),
        value=value,
        judge=_JUDGES.get(source.id_or_none("type") or "api", "agent"),
        at=row.moment("modified_at"),
        trace_id=trace,
        span_id=run,
        by=source.id_or_none("user_id"),
        correction=correction,
    )
