"""Episodes with traces, scores on these traces, and what is to be seen of a ledger afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from in_traces import span

from cascade_memory import CascadeMemory
from cascade_memory.capabilities.scores.score import Score

EVENT = "gen_ai.evaluation.result"
Summary = list[tuple[Any, ...]]


def opened(path: Path | None = None, **options: Any) -> CascadeMemory:
    return CascadeMemory(path, embedder="hashing", learn="inline", **options)


def trace(number: int) -> str:
    return f"{number + 1:032x}"


def recalled(memory: CascadeMemory, number: int, *, solution: str | None = "put it into the fridge") -> str:
    """Recall in a trace, end the run as a host does, and return the id of the episode."""
    with span(trace(number), f"{number + 1:016x}"):
        episode = memory.recall(f"cool the {number}. mug of {number % 7} kinds").episode_id
    if solution is not None:
        memory.episodes.finish(episode, solution=solution)
    return episode


def score(number: int, value: Any = 1.0, **fields: Any) -> Score:
    """Return a score on the trace of an episode."""
    given = {"platform": "mine", "id": "1", "name": "correct", "judge": "judge", "at": 1.7e9, "trace_id": trace(number)}
    return Score(value=value, **{**given, **fields})


def summary(memory: CascadeMemory, episodes: Sequence[str]) -> Summary:
    """Return what is to be the same in whatever order scores came: rows, outcomes that count, and cases."""
    rows: Summary = []
    for number, one in enumerate(episodes):
        found = memory.episodes.get(one)
        assert found is not None
        counts = [out for out in memory.episodes.outcomes(episode_id=one) if out.withdrawn_at is None]
        assert len(counts) <= 1
        rows.append(
            (number, found.status, found.reward, found.source, found.answer, [(out.actor, out.channel) for out in counts])
        )
        rows += [
            (number, repr(stored)) for stored in sorted(memory.scores.of(one), key=lambda stored: (stored.platform, stored.id))
        ]
    cases = sorted((case.query, str(case.solution), case.copies, case.trust, case.hidden) for case in memory.cases.all())
    return [*rows, *cases]


# -- events of OpenTelemetry -----------------------------------------------------------------------------------------------


def attributes(**said: Any) -> list[dict[str, Any]]:
    return [{"key": f"gen_ai.evaluation.{name.replace('_', '.')}", "value": value} for name, value in said.items()]


def record(number: int = 1, **fields: Any) -> dict[str, Any]:
    said = attributes(name={"stringValue": "Relevance"}, score_value={"doubleValue": 0.5}, explanation={"stringValue": "why"})
    ids = {"traceId": trace(number), "spanId": f"{number + 1:016x}"}
    return {"timeUnixNano": "1700000000500000000", "eventName": EVENT, **ids, "attributes": said, **fields}


def logs(*records: Any, scope: str = "judge") -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": scope}, "logRecords": list(records)}]}]}
