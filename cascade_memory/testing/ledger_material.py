"""Helpers and sample data for the contract tests of a ledger."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from cascade_memory.domain import NewCase, RecallRecord, Settlement, Solution, digest, pair_key
from cascade_memory.ledger import Ledger

VECTOR = np.array([0.6, 0.8], np.float32)


class LedgerMaterial:
    """Makes ledgers, and records to put into them."""

    COPIES = True  # whether the ledger copies itself; others are copied by the tools of their database
    TTL = 1.0  # seconds of running time after which cases expire in the tests; set more if ``wait`` does not really sleep

    def make(self) -> Ledger:
        """Return the ledger under test."""
        raise NotImplementedError

    def tear(self, ledger: Ledger) -> int:
        """Create orphaned rows, as in a damaged file, and return how many; 0 if this ledger cannot have any."""
        del ledger
        return 0

    def wait(self, seconds: float) -> None:
        """Wait until the ledger's running time (see ``facts.running``) has grown by this many seconds."""
        time.sleep(seconds)

    def now(self) -> float:
        """Return the present time by the clock with which the ledger dates expired and evicted cases."""
        return time.time()

    def unwritable(self) -> Ledger | None:
        """Return a ledger with a namespace that can be read but not written; None if there is no way to make one."""
        return None

    def _ledger(self) -> Ledger:
        ledger = self.make()
        assert ledger.namespace("default", create=True) == 1
        return ledger

    def _refused(self, errors: type[Exception] | tuple[type[Exception], ...], call: Callable[[], object]) -> None:
        try:
            call()
        except errors:
            return
        raise AssertionError(f"the call succeeded, but should have raised {errors}")

    def _case(self, namespace: int = 1, query: str = "q", solution: Solution = "s", **options: Any) -> NewCase:
        fields: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "namespace": namespace,
            "query": query,
            "solution": solution,
            "solution_key": digest(str(solution)),
            "pair_key": pair_key(query, solution),
            "vector": VECTOR,
        }
        return NewCase(**{**fields, **options})

    def _recall(
        self, episode: str | None, namespace: int = 1, candidates: tuple[int, ...] = (), **options: Any
    ) -> RecallRecord:
        n = len(candidates)
        fields: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "episode_id": episode,
            "namespace": namespace,
            "query": "q",
            "vector": VECTOR,
            "kind": "recall",
            "k": 1,
            "at": 1.0,
            "policy": "p",
            "policy_version": 0,
            "encoder": "e",
            "candidates": np.array(candidates, np.int64),
            "groups": np.arange(n),
            "features": np.ones((n, 3), np.float32),
            "numbers": np.ones((n, 6), np.float32),
            "chosen": np.arange(min(n, 1)),
            "shown": n > 0,
            "baseline": math.nan,
            "context": np.ones(2, np.float32),
        }
        return RecallRecord(**{**fields, **options})

    def _settlement(self, episode: str, value: float, case: NewCase | None = None, **options: Any) -> Settlement:
        fields: dict[str, Any] = {
            "episode_id": episode,
            "namespace": 1,
            "value": value,
            "source": "host",
            "at": 2.0,
            "solution": None if case is None else case.solution,
            "learns": True,
            "case": case,
            "agreement": {},
            "overwrite": False,
        }
        return Settlement(**{**fields, **options})

    def _keys(self, ledger: Ledger, namespace: int = 1) -> list[int]:
        """Return the keys of all cases, oldest first."""
        return ledger.newest(namespace, 1_000).tolist()

    def _outcomes(self, ledger: Ledger) -> list[int]:
        """Return the keys of all outcomes that ever existed, oldest first."""
        return [change.ref for change in ledger.tail(0) if change.settles]

    def _filled(self) -> Ledger:
        """Return a ledger with a little of everything: in its one namespace three cases, three episodes, two outcomes."""
        ledger = self._ledger()
        ledger.cases.add([self._case(query="old", metadata={"n": 1}), self._case(query="older", solution="t")])
        key = self._keys(ledger)[0]
        recall = ledger.record(self._recall("e1", candidates=(key,), metadata={"user": "ann"}, thread="t1"))
        case = self._case(query="new", episode_id="e1")
        ledger.settle(self._settlement("e1", 1.0, case, agreement={recall: np.array([1.0], np.float32)}))
        ledger.record(self._recall("e2", candidates=(key,), at=5.0))
        ledger.settle(self._settlement("e2", 0.0, unkept="below"))
        ledger.record(self._recall("e3", at=9.0))
        return ledger
