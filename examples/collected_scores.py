"""An agent whose verdicts come from its traces alone. The model is SCRIPTED; agent, traces, collector and memory are real.

    python examples/collected_scores.py

Each ticket runs in a span of OpenTelemetry. An evaluator, which knows nothing of the memory, looks at the answers later and
writes its verdicts into a file, as the OpenTelemetry Collector does: events ``gen_ai.evaluation.result`` on the span that they
judge. ``memory.scores.collect`` reads the file now and then. The scripted model follows the case that it is shown, and guesses
without one. At the end the same tickets are played once more with direct rewards: the memory learns the same.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from cascade_memory.capabilities.scores import otlp
from cascade_memory.langchain import CascadeMemory

TICKETS, AT_ONCE = 200, 10
FIXES = ["press reset", "pull the tray", "change the cable", "call the landlord", "send a new one"]
TROUBLES = {
    "press reset": ["reset the password of {}", "{} forgot the password again"],
    "pull the tray": ["the printer of {} jams", "paper is stuck in the printer of {}"],
    "change the cable": ["the screen of {} flickers", "no picture on the screen of {}"],
    "call the landlord": ["the door of {} does not open", "{} is locked out of the office"],
    "send a new one": ["{} lost the badge", "the badge of {} fell into the river"],
}
NAMES = ["ann", "bob", "carl", "dora", "emil", "fay", "gus", "hope"]


class Scripted(BaseChatModel):
    """Follows the last case that it is shown; without one it guesses. Put a real model in its place."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        prompt = "\n".join(str(message.text) for message in messages)
        shown = re.findall(rf"Solution:\s*({'|'.join(FIXES)})", prompt)
        answer = shown[-1] if shown else random.Random(messages[-1].text).choice(FIXES)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def evaluate(file: Path, judged: Sequence[tuple[str, str, float]]) -> None:
    """Write verdicts on spans as a line of OTLP JSON, as the Collector's file exporter does."""
    records = [
        {
            "timeUnixNano": str(10**9 * (1_700_000_000 + number)),
            "eventName": "gen_ai.evaluation.result",
            "traceId": trace_id,
            "spanId": span_id,
            "attributes": [
                {"key": "gen_ai.evaluation.name", "value": {"stringValue": "correctness"}},
                {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": value}},
            ],
        }
        for number, (trace_id, span_id, value) in enumerate(judged)
    ]
    scope = {"scope": {"name": "my evaluator"}, "logRecords": records}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [scope]}]}) + "\n")


def play(file: Path | None, tickets: int = TICKETS) -> list[tuple[Any, ...]]:
    """Work through the tickets; return for each its text, its answer, its reward and its source.

    Without a file, the verdicts are direct rewards.
    """
    rng, tracer = random.Random(7), TracerProvider().get_tracer("help desk")
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        agent = create_agent(Scripted(), [], middleware=[memory.middleware()])
        judged: list[tuple[str, str, float]] = []
        for number in range(tickets):
            fix = rng.choice(FIXES)
            ticket = rng.choice(TROUBLES[fix]).format(rng.choice(NAMES))
            with tracer.start_as_current_span("handle a ticket") as span:
                answer = agent.invoke({"messages": [("user", ticket)]})["messages"][-1].text
            ids = span.get_span_context()
            judged.append((trace.format_trace_id(ids.trace_id), trace.format_span_id(ids.span_id), float(answer == fix)))
            if (number + 1) % AT_ONCE:
                continue
            if file is not None:
                evaluate(file, judged)
                memory.scores.collect(otlp.collect(file))
            else:
                for trace_id, span_id, value in judged:
                    memory.reward(trace_id=trace_id, span_id=span_id, value=value, source="judge")
            judged.clear()
        cases = {case.id: case.query for case in memory.cases.all()}
        return [
            (one.query, one.answer, one.reward, one.source, [cases.get(shown) for shown in one.cases])
            for one in memory.episodes.all(newest_first=False)
        ]


def main() -> None:
    """Play the tickets with collected verdicts, then with direct rewards, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        collected = play(Path(folder) / "evaluations.jsonl")
    fifth = TICKETS // 5
    solved = [int(100 * sum(row[2] for row in collected[place : place + fifth]) / fifth) for place in range(0, TICKETS, fifth)]
    print(f"SCRIPTED model, real agent, traces and memory; tickets solved in each fifth of {TICKETS}:")
    print("  " + "  ".join(f"{share} %" for share in solved))
    print(f"the same outcomes and the same cases as with direct rewards: {collected == play(None)}")


if __name__ == "__main__":
    main()
