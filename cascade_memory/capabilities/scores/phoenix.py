"""Reads the annotations of Phoenix, of spans and of whole traces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from urllib.parse import quote

from cascade_memory.capabilities.scores.asking import Platform, address, setting
from cascade_memory.capabilities.scores.collecting import batches, by_cursor, in_order, scores, with_withdrawn
from cascade_memory.capabilities.scores.fields import Fields, written
from cascade_memory.capabilities.scores.score import Judge, Score, Unread

_URL, _PAGE, _TRACES, _IDS = "http://localhost:6006", 1_000, 100, 150  # many proxies take 8 KiB of address: 150 ids are 6.5
_LATE = 86_400.0  # seconds: traces are listed by when they began, annotations come later
_JUDGES: dict[str, Judge] = {"HUMAN": "human", "LLM": "judge", "CODE": "code", "AGENT": "agent"}


def collect(*, since: float = 0.0, url: str | None = None) -> Iterator[Score | Unread]:
    """Yield the annotations of all traces that began after a time, the day before it included.

    Phoenix lists them only by trace or span: an earlier ``since`` finds those of older traces. The key: ``PHOENIX_API_KEY``.

    >>> list(collect(url="no address"))
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: the address of Phoenix must look like https://host, without a key or a password in it
    """
    with _platform(url) as platform:
        pages = _pages(platform, "traces", limit=_TRACES, start_time=written(since - _LATE), include_spans="true")
        traces = {trace.id("trace_id"): [span.id("span_id") for span in trace.items("spans")] for trace in pages}
        of_span = {span: trace for trace, spans in traces.items() for span in spans}
        yield from in_order(scores(_annotations(platform, traces, of_span), lambda row: _score_of(row, of_span)))


def check(known: Sequence[Score], *, url: str | None = None) -> Iterator[Score | Unread]:
    """Read the annotations of the spans and traces of known scores again: as they are now, or with ``deleted=True``.

    >>> list(check([]))
    []
    """
    of_span = {one.span_id: one.trace_id for one in known if one.span_id is not None}
    traces = dict.fromkeys(one.trace_id for one in known if one.span_id is None and one.trace_id is not None)
    with _platform(url) as platform:
        yield from with_withdrawn(platform, known, _annotations(platform, traces, of_span), lambda row: _score_of(row, of_span))


def _platform(url: str | None) -> Platform:
    where = (url or setting("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_HOST", default=_URL)).rstrip("/").removesuffix("/v1/traces")
    where = address(where, of="Phoenix", secret=bool(setting("PHOENIX_API_KEY", default="")))
    headers = {"authorization": f"Bearer {key}"} if (key := setting("PHOENIX_API_KEY", default="")) else {}
    return Platform("Phoenix", where, headers=headers, keys="PHOENIX_API_KEY")


def _annotations(platform: Platform, traces: Iterable[str], of_span: Iterable[str]) -> Iterator[Fields]:
    spans = (_pages(platform, "span_annotations", span_ids=ids, limit=_PAGE) for ids in batches(of_span, _IDS))
    whole = (_pages(platform, "trace_annotations", trace_ids=ids, limit=_PAGE) for ids in batches(traces, _IDS))
    return chain.from_iterable(chain(spans, whole))


def _pages(platform: Platform, what: str, **asked: object) -> Iterator[Fields]:
    project = quote(setting("PHOENIX_PROJECT", "PHOENIX_PROJECT_NAME", default="default"), safe="")
    return by_cursor(platform, f"/v1/projects/{project}/{what}", lambda page: page.text_or_none("next_cursor"), **asked)


def _score_of(row: Fields, of_span: Mapping[str, str | None]) -> Score | None:
    result, span = row.inner("result"), row.id_or_none("span_id")
    value = result.typed("score", "a number") if result.has("score") else result.text_or_none("label")
    if value is None:  # a note
        return None
    return Score(
        platform="phoenix",
        id=row.id("id"),
        name=row.id("name"),
        value=value,
        judge=row.one_of("annotator_kind", _JUDGES),
        at=row.moment("updated_at"),
        trace_id=row.id("trace_id") if span is None else of_span.get(span),
        span_id=span,
        by=row.id_or_none("user_id"),
    )
