"""Saved learned state. It only saves time: the ledger can always replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cascade_memory.ports.policy import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The learned state of one namespace after entry ``seq`` of the ledger's log, with all outcomes up to the key ``known``.

    A rebuild reads outcomes from the ledger while the log grows, so ``known`` may be ahead of ``seq``. Later log entries about
    outcomes up to ``known`` must not be learned twice.
    """

    namespace: int
    seq: int
    known: int
    policy: str
    encoder: str
    state: Mapping[str, Floats]
    weights: Path | None = None  # a file with the weights of a trained encoder


class Snapshots(Protocol):
    """Keeps the newest snapshots of each namespace. One that cannot be read is ignored, since it may come from elsewhere."""

    @property
    def path(self) -> Path | None:
        """The folder of the snapshots, if they are files."""
        ...

    def save(self, snapshot: Snapshot, write_weights: Callable[[Path], None] | None = None) -> None:
        """Store a snapshot completely, or raise; delete older ones. ``write_weights`` writes a trained encoder to a file."""
        ...

    def latest(self, namespace: int, *, policy: str, encoder: str, until: int, after: int = -1) -> Snapshot | None:
        """Return the newest readable snapshot of policy and encoder after the log entry ``after``, up to ``until``; or None."""
        ...

    def every(self) -> Iterator[Snapshot]:
        """Yield all readable snapshots, the oldest of each namespace first."""
        ...

    def remove(self, snapshot: Snapshot) -> None:
        """Delete a snapshot that cannot be used here, unless others may be able to use it."""
        ...

    def drop(self, namespace: int) -> None:
        """Delete the snapshots of a namespace, because they contain what must be forgotten; raise if that fails."""
        ...

    def unusable(self) -> int:
        """Count the snapshots that are damaged or were never finished."""
        ...

    def remove_unusable(self) -> None:
        """Delete the snapshots that are damaged or were never finished."""
        ...


class SnapshotRows(Protocol):
    """Snapshots as bytes in a database. ``ranker`` names the policy and encoder that can read them."""

    def put(self, namespace: int, seq: int, ranker: str, content: bytes, weights: Path | None) -> None:
        """Store a snapshot, unless data was withdrawn or deleted after log line ``seq``; keep the newest few of each ranker."""
        ...

    def newest(self, namespace: int, ranker: str, until: int, after: int) -> tuple[int, bytes] | None:
        """Return (seq, content) of the newest snapshot with a ``seq`` greater than ``after`` and at most ``until``, or None."""
        ...

    def every(self) -> Iterator[tuple[int, int, str, bytes]]:
        """Yield (namespace, seq, ranker, content) of all snapshots, the oldest of each namespace first."""
        ...

    def read_weights(self, namespace: int, seq: int, ranker: str, target: Path) -> bool:
        """Write the weights of a snapshot to the file ``target``; return whether it has any."""
        ...

    def delete(self, namespace: int) -> None:
        """Delete all snapshots of a namespace."""
        ...
