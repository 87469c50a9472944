"""Reads the scores in what is posted to a webhook."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from cascade_memory.capabilities.scores.fields import Fields
from cascade_memory.capabilities.scores.score import Judge, Score
from cascade_memory.domain.validation import check_moment
from cascade_memory.errors import InvalidInput, PlatformFailed

_JUDGES: dict[str, Judge] = {"human": "human", "judge": "judge", "code": "code", "agent": "agent"}


def scores_in(platform: str, body: object) -> list[Score]:
    """Return the scores in a body; raise ``InvalidInput`` with a sentence if it has another form.

    It is ``{"scores": [...]}`` with the fields of ``Score``, or, from LangSmith, what its rules post. A body of Langfuse that
    tells of a prompt (it has a ``type``) has no scores.

    >>> one = {"id": "7", "name": "thumb", "value": True, "judge": "human", "at": 1.7e9, "trace_id": "4bf9"}
    >>> scores_in("mine", {"scores": [one]})[0].value
    True
    """
    try:
        found = Fields("the body", body)
        if platform == "langsmith" and found.has("runs"):
            at = found.moment("end_time")
            return [one for run in found.items("runs") for one in _of_run(run, at)]
        if platform == "langfuse" and found.has("type") and not found.has("scores"):
            return []
        return [_score(platform, row) for row in found.items("scores")]
    except PlatformFailed as error:
        raise InvalidInput(str(error).removesuffix("; its API may have changed")) from None


def _score(platform: str, row: Fields) -> Score:
    return Score(
        platform=platform,
        id=row.id("id"),
        name=row.id("name"),
        value=row.value("value"),
        judge=row.one_of("judge", _JUDGES),
        at=row.moment("at") if isinstance(row.raw("at"), str) else check_moment(row.raw("at"), "at"),
        trace_id=row.id_or_none("trace_id"),
        span_id=row.id_or_none("span_id"),
        by=row.id_or_none("by"),
        correction=row.text_or_none("correction"),
        deleted=row.typed("deleted", "true or false") is True if row.has("deleted") else False,
    )


def _of_run(run: Fields, at: float) -> Iterator[Score]:
    """Yield the mean of each kind of feedback of a run, or its label if all that was given is one label.

    A mean does not say who judged: it counts as a judge's. Its id is made of the run and the kind, so that a later mean
    replaces it.
    """
    stats = run.inner("feedback_stats")
    for name in stats.names():
        one = stats.inner(name)
        labels = one.inner("values").names()
        named = Fields("the body", {"kind of feedback": name, "label": labels[0] if len(labels) == 1 else None})
        value = one.value("avg") if one.value("n") else named.value("label")
        if value is not None:
            span, kind = run.id("id"), named.id("kind of feedback")
            yield Score(
                platform="langsmith",
                id=f"{span}:{hashlib.sha256(kind.encode()).hexdigest()[:16]}",
                name=kind,
                value=value,
                judge="judge",
                at=at,
                trace_id=run.id_or_none("trace_id"),
                span_id=span,
            )
