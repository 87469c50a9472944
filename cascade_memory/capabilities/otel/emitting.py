"""Makes spans, metrics and events of OpenTelemetry from what a memory has done.

The names are those of OpenTelemetry's conventions for generative AI (memory operations, and evaluation results). What these do
not name begins with ``cascade_memory.``.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode

from cascade_memory.domain.cost import STEPS
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import NewCase, Settled
from cascade_memory.domain.trajectory import solution_text
from cascade_memory.engine.request import Judgement, RecallRequest
from cascade_memory.insight.stats import Receipt

SCOPE = "cascade_memory"
OPERATION, STORE, COUNT = "gen_ai.operation.name", "gen_ai.memory.store.id", "gen_ai.memory.record.count"
RECORD, QUERY, RECORDS = "gen_ai.memory.record.id", "gen_ai.memory.query.text", "gen_ai.memory.records"
CONVERSATION, ERROR = "gen_ai.conversation.id", "error.type"
EVALUATED, NAME, VALUE = "gen_ai.evaluation.result", "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
EPISODE, SOURCE = "cascade_memory.episode.id", "cascade_memory.reward.source"
DURATION = "gen_ai.client.operation.duration"
_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048)
_REMEMBERED = 4_096  # episodes whose span is known, so that their reward can name it


class Emitter:
    """Emits a span and metrics for each thing that a memory has done; with ``content``, the spans hold tasks and cases.

    A span is made when its operation is over, with the time at which that began.
    """

    def __init__(self, ranker: str, tracer_provider: Any, meter_provider: Any, *, content: bool) -> None:
        version = importlib.metadata.version("cascade-memory")
        self._ranker, self._content = ranker, content
        self._tracer = trace.get_tracer(SCOPE, version, tracer_provider)
        meter = metrics.get_meter(SCOPE, version, meter_provider)
        self._duration = meter.create_histogram(
            DURATION, "s", "How long an operation took.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._recalls = meter.create_counter("cascade_memory.recalls", "{recall}", "Recalls, by what they led to.")
        self._rewards = meter.create_counter("cascade_memory.rewards", "{reward}", "Rewards, by their source.")
        self._spans: OrderedDict[str, SpanContext] = OrderedDict()  # of recalls, by episode
        self._lock = threading.Lock()

    def recall(self, began: int, asked: RecallRequest, found: Recall) -> None:
        """Emit what a recall, or a search, has found."""
        failed = None if found.error is None else found.error.partition(":")[0]
        span = self._begun("search_memory", began, asked.namespace, len(found.cases), failed)
        if not asked.search:
            self._remember(found.episode_id, span)
        if span.is_recording():
            span.set_attributes({"cascade_memory.ranker": self._ranker, **_of_recall(asked, found)})
            if self._content:
                span.set_attributes({QUERY: found.query, RECORDS: _records(found)})
        self._ended(span, "search_memory", began, failed)
        self._recalls.add(1, {"cascade_memory.result": _result(found, failed), "cascade_memory.search": asked.search})

    def reward(self, began: int, asked: Judgement, found: Settled) -> None:
        """Emit how an episode ended, with the event of an evaluation's result; it names the span of the recall if known."""
        if not found.changed:
            return  # the same reward again says nothing new
        verb = "update_memory" if found.case_id is None else "create_memory"
        judged = self._spans.get(asked.episode_id)
        links = [] if judged is None else [trace.Link(judged)]
        span = self._begun(verb, began, asked.namespace, None if found.case_id is None else 1, None, links)
        if span.is_recording():
            result = {NAME: "reward", VALUE: asked.value, EPISODE: asked.episode_id, SOURCE: asked.source}
            span.add_event(EVALUATED, result)
            span.set_attributes({EPISODE: asked.episode_id, **({RECORD: found.case_id} if found.case_id else {})})
            if self._content and found.case_id and asked.solution is not None:
                told = {"id": found.case_id, "content": {"solution": solution_text(asked.solution)}}
                span.set_attribute(RECORDS, _json([told]))
        self._ended(span, verb, began, None)
        self._rewards.add(1, {SOURCE: asked.source})

    def add(self, began: int, asked: tuple[str, Sequence[NewCase]], found: Sequence[str]) -> None:
        """Emit which cases were added."""
        namespace, cases = asked
        span = self._begun("create_memory", began, namespace, len(found), None)
        if span.is_recording():
            if len(found) == 1:
                span.set_attribute(RECORD, found[0])
            if self._content:
                told = (_record(id, case.query, solution_text(case.solution)) for id, case in zip(found, cases, strict=True))
                span.set_attribute(RECORDS, _json(list(told)))
        self._ended(span, "create_memory", began, None)

    def forget(self, began: int, asked: tuple[str, Any], found: Receipt) -> None:
        """Emit how many cases were deleted, and which one if it was one; their texts are gone."""
        namespace, case_ids = asked
        span = self._begun("delete_memory", began, namespace, found.cases, None)
        if isinstance(case_ids, str):
            span.set_attribute(RECORD, case_ids)
        self._ended(span, "delete_memory", began, None)

    # -- parts of a span -------------------------------------------------------------------------------------------------

    def _begun(
        self, verb: str, began: int, namespace: str, count: int | None, failed: str | None, links: Sequence[trace.Link] = ()
    ) -> Span:
        attributes: dict[str, str | int] = {OPERATION: verb, STORE: namespace}
        if count is not None:
            attributes[COUNT] = count
        if failed is not None:
            attributes[ERROR] = failed
        return self._tracer.start_span(verb, kind=SpanKind.INTERNAL, attributes=attributes, links=list(links), start_time=began)

    def _ended(self, span: Span, verb: str, began: int, failed: str | None) -> None:
        now = time.time_ns()
        if failed is not None:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(now)
        context = trace.set_span_in_context(span)  # for exemplars
        attributes = {OPERATION: verb} if failed is None else {OPERATION: verb, ERROR: failed}
        self._duration.record((now - began) / 1e9, attributes, context)

    def _remember(self, episode_id: str, span: Span) -> None:
        context = span.get_span_context()
        if context.is_valid:
            with self._lock:
                self._spans[episode_id] = context
                if len(self._spans) > _REMEMBERED:
                    self._spans.popitem(last=False)


def _of_recall(asked: RecallRequest, found: Recall) -> Mapping[str, Any]:
    attributes: dict[str, Any] = {"cascade_memory.search": asked.search}
    for step in STEPS if found.spent is not None else ():
        if not math.isnan(seconds := getattr(found.spent, step)):
            attributes[f"cascade_memory.step.{step}"] = seconds  # a metric for each would take as long as all the rest
    if asked.thread_id is not None:
        attributes[CONVERSATION] = asked.thread_id
    if asked.search:
        return attributes
    attributes |= {
        EPISODE: found.episode_id,
        "cascade_memory.abstained": found.abstained,
        "cascade_memory.arm": found.arm,
        "cascade_memory.case.ids": [case.id for case in found.cases],
    }
    for name in ("similarity", "utility", "uncertainty", "propensity") if found.cases else ():
        values = [getattr(case, name) for case in found.cases]
        if not any(map(math.isnan, values)):  # a ranker need not know them all
            attributes[f"cascade_memory.case.{name}"] = values
    return attributes


def _result(found: Recall, failed: str | None) -> str:
    if failed is not None:
        return "failed"
    if found.arm == "holdout":
        return "held out"
    if found.cases:
        return "shown"
    return "abstained" if found.abstained else "nothing stored"


def _records(found: Recall) -> str:
    told = [_record(case.id, case.query, solution_text(case.solution), case.score, case.metadata) for case in found.cases]
    return _json(told)


def _record(
    id: str, task: str, solution: str, score: float = math.nan, metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a case in the form of the convention's schema of records."""
    record: dict[str, Any] = {"id": id, "content": {"task": task, "solution": solution}}
    if not math.isnan(score):
        record["score"] = score
    if metadata:
        record["metadata"] = dict(metadata)
    return record


def _json(records: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(records, ensure_ascii=False)
