"""Measures what spans and metrics add to a recall: processor time of both, alternating, in one run.

python examples/benchmarks/spans.py
"""

from __future__ import annotations

import statistics
import time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from cascade_memory import CascadeMemory

CASES, ROUNDS, RECALLS = 1_000, 20, 25


def seconds_of_recalls(memory: CascadeMemory, first: int) -> list[float]:
    """Return the processor time of each of some recalls."""
    found: list[float] = []
    for number in range(first, first + RECALLS):
        began = time.process_time()
        memory.recall(f"cool the mug on shelf {number}")
        found.append(time.process_time() - began)
    return found


def main() -> None:
    """Print the medians."""
    tracers, meters = TracerProvider(), MeterProvider([InMemoryMetricReader()])
    without: list[float] = []
    with_spans: list[float] = []
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        memory.add([(f"cool mug {number} of {CASES}", "put it into the fridge") for number in range(CASES)], progress=False)
        seconds_of_recalls(memory, 0)
        for number in range(ROUNDS):
            memory.otel.off()
            without += seconds_of_recalls(memory, RECALLS * number)
            memory.otel.on(tracer_provider=tracers, meter_provider=meters)
            with_spans += seconds_of_recalls(memory, RECALLS * number)
    off, on = (1000 * statistics.median(found) for found in (without, with_spans))
    print(f"a recall: {off:.2f} ms of processor time, with spans and metrics {on:.2f} ms ({on - off:+.2f} ms)")


if __name__ == "__main__":
    main()
