"""Saved learned state: a snapshot is written completely or not at all, and is never a pickle."""

from cascade_memory.ports.snapshots import Snapshot
from cascade_memory.snapshots.store import SnapshotStore, copy_snapshots
from cascade_memory.snapshots.stored_rows import SnapshotsInRows

__all__ = ["Snapshot", "SnapshotStore", "SnapshotsInRows", "copy_snapshots"]
