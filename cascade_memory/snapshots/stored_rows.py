"""Snapshots in a database that many workers share."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from cascade_memory.ports.snapshots import Snapshot, SnapshotRows
from cascade_memory.redaction.saying import log_of
from cascade_memory.snapshots.format import parse_arrays, read_snapshot, write_snapshot

_WEIGHTS = "encoder.safetensors"
_log = log_of(__name__)


class SnapshotsInRows:
    """Stores snapshots as rows. All workers learn the same from the same log, so the newest one serves each of them."""

    path = None

    def __init__(self, rows: SnapshotRows) -> None:
        self._rows = rows
        self._read = threading.local()  # weights are loaded from a file, by several threads at once

    def save(self, snapshot: Snapshot, write_weights: Callable[[Path], None] | None = None) -> None:
        """Store a snapshot completely, or raise; delete older ones."""
        content = io.BytesIO()
        write_snapshot(content, snapshot, None if write_weights is None else _WEIGHTS)
        with tempfile.TemporaryDirectory(prefix="cascade-memory-") as folder:
            weights = None if write_weights is None else Path(folder) / _WEIGHTS
            if write_weights is not None and weights is not None:
                write_weights(weights)
            self._rows.put(
                snapshot.namespace, snapshot.seq, _ranker(snapshot.policy, snapshot.encoder), content.getvalue(), weights
            )

    def latest(self, namespace: int, *, policy: str, encoder: str, until: int, after: int = -1) -> Snapshot | None:
        """Return the newest readable snapshot of this policy and encoder after log entry ``after`` up to ``until``, or None."""
        ranker = _ranker(policy, encoder)
        while (found := self._rows.newest(namespace, ranker, until, after)) is not None:
            seq, content = found
            if (snapshot := self._parsed(namespace, seq, ranker, content)) is not None:
                return snapshot
            until = seq - 1
        return None

    def every(self) -> Iterator[Snapshot]:
        """Yield all readable snapshots, the oldest of each namespace first.

        The file with a snapshot's weights exists until the next snapshot is read.
        """
        for row in self._rows.every():
            if (snapshot := self._parsed(*row)) is not None:
                yield snapshot

    def _parsed(self, namespace: int, seq: int, ranker: str, content: bytes) -> Snapshot | None:
        try:
            snapshot, weights = read_snapshot(parse_arrays(content), (namespace, seq))
            if _ranker(snapshot.policy, snapshot.encoder) != ranker:
                raise ValueError("it is of another ranker")  # noqa: TRY301 - handled below
            return snapshot if weights is None else replace(snapshot, weights=self._weights(namespace, seq, ranker))
        except Exception as error:  # noqa: BLE001 - zip, numpy and JSON readers can raise anything on damaged bytes
            _log.warning(
                "the snapshot of namespace %d at line %d is unreadable (%s); trying an older one", namespace, seq, error
            )
            return None

    def _weights(self, namespace: int, seq: int, ranker: str) -> Path:
        self._read.folder = folder = _Folder()  # replaces, and so removes, the one that this thread read before
        target = folder.path / _WEIGHTS
        if not self._rows.read_weights(namespace, seq, ranker, target):
            raise ValueError("its weights are missing")
        return target

    def remove(self, snapshot: Snapshot) -> None:
        """Keep the snapshot: another worker may be able to load what this one cannot. Newer snapshots replace it in time."""

    def drop(self, namespace: int) -> None:
        """Delete the snapshots of a namespace."""
        self._rows.delete(namespace)

    def unusable(self) -> int:
        """Return 0: a row is written completely or not at all, and one that cannot be read is replaced in time."""
        return 0

    def remove_unusable(self) -> None:
        """Do nothing: newer snapshots replace the ones that cannot be read."""


class _Folder:
    """A temporary folder that is deleted together with this object, or when the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="cascade-memory-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _ranker(policy: str, encoder: str) -> str:
    return hashlib.blake2b(f"{policy}\x00{encoder}".encode(), digest_size=16).hexdigest()
