"""Measures recalls beside metadata as long and as many as they may be, with the default deadline of 2 s.

``python examples/benchmarks/metadata.py`` stores 100,000 cases and 10,000 episodes (7 GB in SQLite) and prints one row for each
kind of recall; ``--database URL`` does it in PostgreSQL, and ``--folder`` in a folder of yours.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

from cascade_memory import CascadeMemory
from cascade_memory.domain.metadata import MAX_METADATA_BYTES, MAX_METADATA_VALUES

_AT_ONCE = 500
_LONG = MAX_METADATA_BYTES - 10
_ONE_IN = 100  # cases has as many values as it may, the others one long one
_RECALLS = 10


def long_text(of: random.Random, chars: int = _LONG) -> str:
    return of.randbytes(chars // 2 + 1).hex()[:chars]


def many(of: random.Random) -> dict[str, str]:
    chars = MAX_METADATA_BYTES // MAX_METADATA_VALUES - 4
    return {f"k{i:03}": long_text(of, chars) for i in range(MAX_METADATA_VALUES)}


def stored(count: int, of: random.Random) -> Iterator[tuple[str, str, dict[str, str]]]:
    for i in range(count):
        metadata = many(of) if i % _ONE_IN == 0 else {f"k{i % 900:03}": long_text(of)}
        yield f"task {i} of kind {i % 97}", f"solution {i % 97}", metadata


def fill(memory: CascadeMemory, count: int, of: random.Random) -> None:
    cases = stored(count, of)
    for start in range(0, count, _AT_ONCE):
        memory.add([next(cases) for _ in range(min(_AT_ONCE, count - start))], progress=False)
    for i in range(count // 10):
        memory.recall(f"task {i}", metadata=many(of) if i % _ONE_IN == 0 else {f"k{i % 900:03}": long_text(of)})


def row(kind: str, memory: CascadeMemory, **options: Any) -> None:
    waited, wrong = [], 0
    for i in range(_RECALLS):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = memory.recall(f"task {i} of kind {i % 9}", **options)
        waited.append(time.perf_counter() - began)
        wrong += found.error is not None
    waited.sort()
    print(f"| {kind} | {waited[len(waited) // 2]:.3f} s | {waited[-1]:.3f} s | {wrong} of {_RECALLS} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--database")
    parser.add_argument("--folder")
    options = parser.parse_args()
    of = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        place, began = options.database or options.folder or folder, time.perf_counter()
        with CascadeMemory(place, embedder="hashing", learn="off") as memory:
            fill(memory, options.cases, of)
        print(f"{options.cases:,} cases were stored in {time.perf_counter() - began:.0f} s\n")
        print("| Recall | median | slowest | failed |\n| --- | --- | --- | --- |")
        with CascadeMemory(place, embedder="hashing", learn="off") as memory:
            text, every = long_text(of), many(of)
            memory.warm()
            for namespace in ("another", "default"):
                memory.acting(namespace=namespace).recall("task")
                row(f"{namespace} namespace, without metadata", memory, namespace=namespace)
                row(f"{namespace} namespace, one long value", memory, namespace=namespace, metadata={"k000": text})
                row(f"{namespace} namespace, {MAX_METADATA_VALUES:,} values", memory, namespace=namespace, metadata=every)
                row(f"{namespace} namespace, where equal", memory, namespace=namespace, where={"k000": text})
                between = {"k001": {"$gt": "0"}, "k002": {"$ne": "x"}}
                row(f"{namespace} namespace, where between", memory, namespace=namespace, where=between)


if __name__ == "__main__":
    main()
