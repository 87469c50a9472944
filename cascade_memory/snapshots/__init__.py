"""Learned state on disk: a snapshot is written completely or not at all, and is never a pickle."""

from cascade_memory.snapshots.names import copy_snapshots
from cascade_memory.snapshots.store import Snapshot, SnapshotStore

__all__ = ["Snapshot", "SnapshotStore", "copy_snapshots"]
