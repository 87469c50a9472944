"""Reads evaluations from files of OpenTelemetry: OTLP JSON, one request a line, as the Collector's file exporter writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cascade_memory.capabilities.scores.score import Judge, Score, Unread
from cascade_memory.domain.digests import digest
from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.validation import check_path
from cascade_memory.errors import InvalidInput

# Our own spans only repeat rewards that are known; LONGEST is the most bytes of a line.
EVENT, OURS, LONGEST = "gen_ai.evaluation.result", "cascade_memory", 2**24
_NAME, _VALUE, _LABEL = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)  # JSON of another form
# Events are in the logs, or in the spans that they judge. Each level is a list of objects.
_LEVELS = (("resourceLogs", "scopeLogs", "logRecords"), ("resourceSpans", "scopeSpans", "spans", "events"))


def collect(path: str | Path, *, judge: Judge = "judge") -> Iterator[Score | Unread]:
    """Yield the evaluations in a file (by ``judge``: the format does not say), and an ``Unread`` for a line that is none.

    The same name again, from the same scope and on the same span, is the same one revised. Explanations are not read.

    >>> list(collect("no-such-file.jsonl"))
    Traceback (most recent call last):
    cascade_memory.errors.InvalidInput: no-such-file.jsonl cannot be read: No such file or directory
    """
    try:
        with (file := check_path(path, "path")).open("rb") as lines:
            yield from _each(lines, f"of {file.name}", judge)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None


def _each(lines: IO[bytes], where: str, judge: Judge) -> Iterator[Score | Unread]:
    for number, line in enumerate(iter(lambda: lines.readline(LONGEST + 1), b""), 1):
        if number == 1 and line.strip() == b"{":  # one request, over many lines
            line += lines.read(LONGEST)
        if len(line) > LONGEST:
            raise InvalidInput(f"line {number:,} {where} has more than {LONGEST:,} bytes: is it OTLP JSON, one request a line?")
        try:
            found = [path for levels in _LEVELS for path in _below((parsed(line.decode()),), levels)] if line.strip() else []
        except _UNFIT as error:
            why = f"is no OTLP JSON ({type(error).__name__})" if line.endswith(b"\n") else "is cut off"
            yield Unread(f"line {number:,} {where} {why}")
            continue
        for path in found:
            try:
                if EVENT in (path[-1].get("eventName"), path[-1].get("name")) and path[2].get("scope", {}).get("name") != OURS:
                    yield _score(path, judge)
            except _UNFIT as error:
                yield Unread(f"line {number:,} {where} has an evaluation that cannot be read ({type(error).__name__})")


def _below(path: tuple[dict[str, Any], ...], levels: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], ...]]:
    """Yield each object of the last level, after those that contain it."""
    for inner in path[-1].get(levels[0], ()):
        yield from _below((*path, inner), levels[1:]) if levels[1:] else [(*path, inner)]


def _score(path: tuple[dict[str, Any], ...], judge: Judge) -> Score:
    event, of = path[-1], path[-1] if "traceId" in path[-1] else path[-2]  # an event in a span is about that span
    said: dict[str, Any] = {one["key"]: next(iter(one["value"].values()), None) for one in event["attributes"]}
    trace, span, name = of.get("traceId") or None, of.get("spanId") or None, said[_NAME]
    scope, value = path[2].get("scope", {}).get("name", ""), said.get(_VALUE)
    return Score(
        platform="otlp",
        id=digest(json.dumps([trace, span, scope, name])),
        name=name,
        value=float(value) if value is not None else said.get(_LABEL),
        judge=judge,
        at=int(event.get("timeUnixNano") or event["observedTimeUnixNano"]) / 1e9,
        trace_id=trace,
        span_id=span,
    )
