"""One who reads the log of a database all along and learns from it, and others who come later: all must learn the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from db_worker import opened
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import StoreError

_SLATES = 48  # the last recalls of a namespace, for which the predictions are compared


def learned(memory: CascadeMemory, namespaces: list[str]) -> dict[str, Any]:
    """Return how many rewards each namespace has learned, and what it predicts for its last recalls."""
    engine, found = engine_of(memory), {}
    for name in namespaces:
        state = engine.namespace_state(name)
        engine.catch_up()
        predictions: list[list[float]] = []
        for lesson in engine.parts.ledger.lessons.history(state.namespace_id, _SLATES):
            if len(lesson.slate):
                choice = state.policy.select(lesson.slate, 4, abstain=False, seed=1)
                numbers = [choice.value, choice.uncertainty, choice.score, choice.utility]
                predictions.append([float(one) for one in np.concatenate([np.asarray(part, float) for part in numbers])])
        found[name] = {"rewards": state.policy.rewards, "predictions": predictions}
    return found


def witness(url: str, namespaces: list[str], report: Path, stop: Path, pipe: int) -> None:
    """Read every line of the log as it appears, and learn from it, until all others have ended."""
    del pipe
    memory = opened(url, learn="inline")
    lines: list[tuple[int, str, int]] = []
    ready = last = False
    while not last:
        last = stop.exists()  # before reading: then nobody writes any more
        try:
            if not ready:
                for name in namespaces:
                    memory.acting(namespace=name).warm()
                ready = True
            last = not _read(memory, lines) and last
        except StoreError:  # the server is being restarted
            last = False
        time.sleep(0.05)
    found = {"lines": lines, "learned": learned(memory, namespaces), "failures": dict(memory.health().failures)}
    report.write_text(json.dumps(found))
    memory.close()


def _read(memory: CascadeMemory, lines: list[tuple[int, str, int]]) -> bool:
    engine = engine_of(memory)
    changes = engine.parts.ledger.tail(lines[-1][0] if lines else 0, 10_000)
    lines += [(change.seq, change.kind, change.ref) for change in changes]
    engine.catch_up()
    return bool(changes)


def latecomer(url: str, namespaces: list[str], report: Path, pipe: int) -> None:
    """Open the memory, which takes what was learned from a snapshot and the log; then learn all of it from the outcomes."""
    del pipe
    with opened(url, learn="inline") as memory:
        restored = learned(memory, namespaces)
        for name in namespaces:
            engine_of(memory).refit(name)
        report.write_text(json.dumps({"restored": restored, "afresh": learned(memory, namespaces)}))


def differences(one: dict[str, Any], other: dict[str, Any], who: str) -> list[str]:
    """Name the namespaces in which two did not learn the same."""
    wrong = []
    for name, mine in one.items():
        theirs = other[name]
        if mine["rewards"] != theirs["rewards"]:
            wrong.append(f"{who} learned {mine['rewards']} rewards of {name}, and not {theirs['rewards']}")
        far = max(
            (np.abs(np.subtract(*pair)).max() for pair in zip(mine["predictions"], theirs["predictions"], strict=True)),
            default=0,
        )
        if far > 1e-6:
            wrong.append(f"{who} predicts otherwise in {name}, by up to {far:.2g}")
    return wrong
