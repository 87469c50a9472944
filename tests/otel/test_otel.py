"""Spans and metrics: named as the conventions name them, without content unless asked for, never in the way of the agent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput, MissingExtra

# The attributes that the conventions for generative AI give to memory operations and to the event of an evaluation's result
# (semantic-conventions-genai, gen-ai-spans.md and gen-ai-events.md), as far as they are about a memory in the same process.
PUBLISHED = {
    *("gen_ai.operation.name", "gen_ai.memory.store.id", "gen_ai.memory.record.id", "gen_ai.memory.record.count"),
    *("gen_ai.memory.query.text", "gen_ai.memory.records", "gen_ai.conversation.id", "error.type"),
    *("gen_ai.evaluation.name", "gen_ai.evaluation.score.value"),
}
OPERATIONS = {"search_memory", "create_memory", "update_memory", "delete_memory"}
ALWAYS = Ranking(abstain=False)


class Telemetry:
    """Providers that keep everything in memory."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def metrics(self) -> dict[str, dict[tuple[Any, ...], float]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        found: dict[str, dict[tuple[Any, ...], float]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                value = point.count if hasattr(point, "count") else point.value
                found.setdefault(metric.name, {})[tuple((point.attributes or {}).values())] = value
        return found


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def memory(telemetry: Telemetry) -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline", ranking=ALWAYS) as memory:
        memory.otel.on(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
        yield memory


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_each_operation_is_a_span_with_published_names(memory: CascadeMemory, telemetry: Telemetry):
    memory.add("cool some mug", "put it into the fridge")
    recall = memory.recall("cool a mug", thread_id="chat-1")
    stored = memory.reward(recall.episode_id, 1.0, solution="put it into the freezer")
    memory.reward(memory.recall("heat an egg").episode_id, 0.0)
    memory.forget(stored)
    spans = telemetry.spans()
    names = ["create_memory", "search_memory", "create_memory", "search_memory", "update_memory", "delete_memory"]
    assert [span.name for span in spans] == names
    for span in spans:
        assert span.kind is SpanKind.INTERNAL
        assert span.name == attributes(span)["gen_ai.operation.name"]
        assert attributes(span)["gen_ai.memory.store.id"] == "default"
        events = [name for event in span.events for name in (event.attributes or {})]
        foreign = [name for name in (*attributes(span), *events) if not name.startswith("cascade_memory.")]
        assert set(foreign) <= PUBLISHED
    searched, rewarded, deleted = attributes(spans[1]), attributes(spans[2]), attributes(spans[5])
    assert searched["gen_ai.memory.record.count"] == len(recall.cases) == 1
    assert searched["gen_ai.conversation.id"] == "chat-1"
    assert searched["cascade_memory.episode.id"] == recall.episode_id
    assert searched["cascade_memory.case.ids"] == (recall.cases[0].id,)
    assert searched["cascade_memory.case.propensity"] == (recall.cases[0].propensity,) == (1.0,)
    assert searched["cascade_memory.ranker"] == "light"
    assert rewarded["gen_ai.memory.record.id"] == deleted["gen_ai.memory.record.id"] == stored
    assert all(span.start_time <= span.end_time for span in spans)


def test_a_reward_is_an_evaluation_that_names_the_span_of_its_recall(memory: CascadeMemory, telemetry: Telemetry):
    recall = memory.recall("cool a mug")
    memory.reward(recall.episode_id, 0.5, source="judge")
    searched, rewarded = telemetry.spans()
    (event,) = rewarded.events
    assert event.name == "gen_ai.evaluation.result"
    assert dict(event.attributes or {}) == {
        "gen_ai.evaluation.name": "reward",
        "gen_ai.evaluation.score.value": 0.5,
        "cascade_memory.episode.id": recall.episode_id,
        "cascade_memory.reward.source": "judge",
    }
    (link,) = rewarded.links
    assert link.context.span_id == searched.get_span_context().span_id


def test_spans_are_children_of_the_callers_span_also_from_another_thread(memory: CascadeMemory, telemetry: Telemetry):
    with telemetry.tracers.get_tracer("agent").start_as_current_span("agent") as outer:
        memory.recall("cool a mug")
        asyncio.run(memory.arecall("cool a mug"))
    parents = [span.parent.span_id for span in telemetry.spans() if span.name == "search_memory" and span.parent]
    assert parents == [outer.get_span_context().span_id] * 2


def test_content_is_left_out_unless_asked_for_and_then_without_secrets(telemetry: Telemetry):
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    with CascadeMemory(embedder="hashing", learn="inline", ranking=ALWAYS) as memory:
        for content in (False, True):
            memory.otel.on(content=content, tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
            telemetry.exporter.clear()
            memory.add(f"marmalade with the key {secret}", "stir it")
            recall = memory.recall("marmalade please", metadata={"shop": "corner"})
            memory.reward(recall.episode_id, 1.0, solution="stir it well", metadata={"shop": "corner"})
            told = json.dumps(
                [[attributes(span), [dict(e.attributes or {}) for e in span.events]] for span in telemetry.spans()]
            )
            assert secret not in told
            assert ("marmalade" in told) is content
            assert ("stir it" in told) is content
    searched = next(span for span in telemetry.spans() if span.name == "search_memory")
    (record, *_) = json.loads(attributes(searched)["gen_ai.memory.records"])
    assert set(record) <= {"id", "content", "score", "metadata"}
    assert record["content"]["solution"].startswith("stir it")
    assert attributes(searched)["gen_ai.memory.query.text"] == "marmalade please"


class Broken(HashingEmbedder):
    """Fails when it is asked for a certain text."""

    def embed(self, texts: Any) -> np.ndarray:
        if "break" in texts:
            raise OSError("the embedder's secret server is down")
        return super().embed(texts)


def test_a_recall_that_fails_open_is_an_error_without_its_message(telemetry: Telemetry):
    with CascadeMemory(embedder=Broken(), learn="inline") as memory:
        memory.otel.on(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
        with pytest.warns(RuntimeWarning, match="could not recall"):
            memory.recall("break")
    (span,) = telemetry.spans()
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == span.status.description
    assert "secret server" not in json.dumps(attributes(span))
    assert telemetry.metrics()["cascade_memory.recalls"] == {("failed", False): 1}


def test_metrics_count_what_recalls_led_to_and_who_rewarded(memory: CascadeMemory, telemetry: Telemetry):
    memory.reward(memory.recall("cool a mug").episode_id, 1.0, solution="fridge")
    memory.reward(memory.recall("cool a mug").episode_id, 1.0, solution="fridge", source="human")
    memory.cases.search("cool a mug")
    found = telemetry.metrics()
    assert found["cascade_memory.recalls"] == {("nothing stored", False): 1, ("shown", False): 1, ("shown", True): 1}
    assert found["cascade_memory.rewards"] == {("host",): 1, ("human",): 1}
    (*_, search) = (attributes(one) for one in telemetry.spans() if one.name.startswith("search_memory"))
    steps = {name: value for name, value in search.items() if name.startswith("cascade_memory.step.")}
    assert set(steps) == {f"cascade_memory.step.{step}" for step in ("embed", "search", "rank", "write")}
    assert all(0.0 <= value < 60.0 for value in steps.values())
    assert found["gen_ai.client.operation.duration"][("search_memory",)] == 3
    assert {operation for (operation, *_) in found["gen_ai.client.operation.duration"]} <= OPERATIONS


def test_switched_off_nothing_is_emitted_and_nobody_listens(memory: CascadeMemory, telemetry: Telemetry):
    memory.otel.on(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)  # twice is once
    memory.recall("cool a mug")
    memory.acting(namespace="other").recall("cool a mug")  # all namespaces of the memory
    assert len(telemetry.spans()) == 2
    memory.otel.off()
    memory.otel.off()
    memory.recall("cool a mug")
    assert len(telemetry.spans()) == 2


def test_the_same_reward_again_is_no_second_span(memory: CascadeMemory, telemetry: Telemetry):
    episode_id = memory.recall("cool a mug").episode_id
    for _ in range(3):
        memory.reward(episode_id, 1.0, solution="fridge")
    assert [span.name for span in telemetry.spans()] == ["search_memory", "create_memory"]
    assert telemetry.metrics()["cascade_memory.rewards"] == {("host",): 1}


@pytest.mark.parametrize("name", ["tracer_provider", "meter_provider"])
def test_what_is_no_provider_is_refused(memory: CascadeMemory, name: str):
    with pytest.raises(InvalidInput, match=f"{name} must have get_"):
        memory.otel.on(**{name: object()})


def test_what_fails_in_the_export_does_not_disturb_the_agent(memory: CascadeMemory):
    class Failing:
        def get_tracer(self, *_: Any, **__: Any) -> Any:
            return self

        def start_span(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("no disk left")

    memory.otel.on(tracer_provider=Failing())
    recall = memory.recall("cool a mug")
    assert recall.error is None
    memory.reward(recall.episode_id, 1.0, solution="fridge")
    assert memory.health().failures["otel"] == 2


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "cascade_memory.capabilities.otel.emitting", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with CascadeMemory(embedder="hashing") as memory:
        with pytest.raises(MissingExtra, match=r'pip install "cascade-memory\[otel\]"'):
            memory.otel.on()
        assert memory.recall("cool a mug").error is None
