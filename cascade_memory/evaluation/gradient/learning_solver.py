"""A solver that is trained on the reward of each task, and can go on after a crash."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cascade_memory import RecalledCase
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.bench.peak_memory import PeakMemory
from cascade_memory.evaluation.gradient.checkpoint import Checkpoint, CheckpointFile
from cascade_memory.evaluation.gradient.local_chat import LocalChat
from cascade_memory.evaluation.gradient.records import Record, columns_of
from cascade_memory.evaluation.gradient.reinforce import Reinforce
from cascade_memory.evaluation.solver import Attempt, Solver


class LearningSolver:
    """Attempts a task without memory, and trains the model on the outcome.

    The tasks must be attempted in their order. A checkpoint is written after each step of the optimiser. After a crash, the
    outcomes up to the checkpoint are returned as they were, and the few episodes after it are played again: their random
    numbers depend on the seed and the place in the stream, so that they have the same answers.
    """

    def __init__(
        self, inner: Solver, chat: LocalChat, reinforce: Reinforce, *, batch: int, file: CheckpointFile, peak: PeakMemory
    ) -> None:
        self._inner, self._chat, self._reinforce = inner, chat, reinforce
        self._batch, self._file, self._peak = batch, file, peak
        self._records: list[Record] = []
        self._peak_before: float | None = None
        peak.begin()
        if (saved := file.read()) is not None:
            self._go_on(saved)

    def _go_on(self, saved: Checkpoint) -> None:
        if len(saved.records) != saved.steps * self._batch or saved.steps < 1:
            raise InvalidInput(f"{self._file.path} has records of {len(saved.records):,} episodes after {saved.steps:,} steps")
        try:
            self._reinforce.load(saved.tensors, saved.steps)
        except InvalidInput as error:
            raise InvalidInput(f"{self._file.path}: {error}. Delete the file") from error
        self._records, self._peak_before = list(saved.records), saved.peak_gib

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream, and learn from its outcome."""
        if cases:
            raise CascadeError("a model that is trained has no memory: it takes no cases")
        if place < len(self._records):  # it was played before a crash
            return Attempt(self._records[place].success, None)
        if place > len(self._records):
            raise CascadeError(f"task {place} cannot be played before task {len(self._records)}")
        began = time.perf_counter()
        self._chat.draw = place
        success = self._inner.attempt(place, ()).success
        sampled = self._chat.last
        assert sampled is not None  # the attempt asked the model
        ratio = self._reinforce.learn(sampled, float(success))
        spent = 1000 * (time.perf_counter() - began)
        self._records.append(Record(success, len(sampled.prompt), len(sampled.answer), ratio, spent))
        if self._reinforce.gathered == 0:
            self._file.write(Checkpoint(self._reinforce.state(), self._reinforce.steps, self._records, self._highest()))
        return Attempt(success, None)

    def _highest(self) -> float | None:
        known = [one for one in (self._peak.gib(), self._peak_before) if one is not None]
        return max(known, default=None)

    def account(self) -> dict[str, Any]:
        """Return the columns that this solver adds to the row of its run: tokens, time, steps of the optimiser, peak memory."""
        return {
            **columns_of(self._records, self._batch),
            "optimiser_steps": self._reinforce.steps,
            "peak_memory_gib": self._highest(),
        }

    def close(self) -> None:
        """Take the adapter out of the model."""
        self._reinforce.close()
