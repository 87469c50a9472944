"""Learned state on disk: complete or not there, never half, never a pickle."""

from cascade_memory.snapshots.names import copy_snapshots
from cascade_memory.snapshots.store import Snapshot, SnapshotStore

__all__ = ["Snapshot", "SnapshotStore", "copy_snapshots"]
