"""Writing and reading snapshots of learned state."""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from cascade_memory.errors import StoreUnwritable
from cascade_memory.ports.policy import Floats

_KEEP = 2
_WRITING = 60.0  # seconds that writing one may take
_MANIFEST = "manifest"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The learned state of one namespace after line ``seq`` of the ledger's log, and of outcomes up to the key ``known``.

    The two differ when all was learned afresh from the ledger while the log went on: lines about known outcomes are no news.
    """

    namespace: int
    seq: int
    known: int
    policy: str
    encoder: str
    state: Mapping[str, Floats]
    weights: Path | None = None  # of an encoder that was trained


class SnapshotStore:
    """A folder of snapshots. ``path=None`` keeps none: a memory in RAM has nothing to come back to."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def save(self, snapshot: Snapshot, write_weights: Callable[[Path], None] | None = None) -> None:
        """Write a snapshot: under another name first, on disk before it gets its own. Older ones beyond the last go.

        The encoder's weights come first: a snapshot that names them has them.
        """
        if self.path is None:
            return
        nonce = uuid.uuid4().hex[:8]  # another process may be writing weights of its own for the same line
        weights = self.path / f"encoder-{snapshot.namespace}-{snapshot.seq:016d}-{nonce}.safetensors"
        manifest = {
            "namespace": snapshot.namespace,
            "seq": snapshot.seq,
            "known": snapshot.known,
            "policy": snapshot.policy,
            "encoder": snapshot.encoder,
            "weights": None if write_weights is None else weights.name,
        }
        target = self.path / f"policy-{snapshot.namespace}-{snapshot.seq:016d}.npz"
        unfinished = target.with_suffix(f".{os.getpid()}.part")  # another process may be writing the same
        try:
            self.path.mkdir(exist_ok=True)
            if write_weights is not None:
                write_weights(weights)
            with unfinished.open("wb") as file:
                text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
                np.savez(file, **cast("dict[str, Any]", {_MANIFEST: text, **snapshot.state}))
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise StoreUnwritable(f"cannot write {target}: {error}") from error
        for old in self._files(snapshot.namespace)[_KEEP:]:
            old.unlink(missing_ok=True)
        for old in self._unnamed(snapshot.namespace):
            old.unlink(missing_ok=True)

    def _unnamed(self, namespace: int) -> list[Path]:
        """Return weights that no snapshot names, but for those that another process may be about to name."""
        files = self._weights(namespace)
        if not files:
            return []
        found = [read for file in self._files(namespace) if (read := self._read(file)) is not None]
        named = {manifest.get("weights") for manifest, _ in found}
        oldest = min((int(manifest["seq"]) for manifest, _ in found), default=0)
        young = time.time() - _WRITING
        return [
            file
            for file in files
            if file.name not in named and (int(file.stem.split("-")[2]) < oldest or file.stat().st_mtime < young)
        ]

    def latest(self, namespace: int, *, policy: str, encoder: str, until: int) -> Snapshot | None:
        """Return the newest readable snapshot of this policy on this encoder, not newer than a line of the log, or None."""
        for file in self._files(namespace):
            found = self._read(file)
            if found is None:
                continue
            manifest, state = found
            # A later one was learned from another ledger: somebody has put back an old copy of this one.
            if (manifest["policy"], manifest["encoder"]) == (policy, encoder) and manifest["seq"] <= until:
                weights = manifest.get("weights")
                return Snapshot(
                    namespace=namespace,
                    seq=manifest["seq"],
                    known=int(manifest.get("known", 0)),
                    policy=policy,
                    encoder=encoder,
                    state=state,
                    weights=None if weights is None or self.path is None else self.path / weights,
                )
        return None

    def remove(self, snapshot: Snapshot) -> None:
        """Delete a snapshot that nobody can use."""
        if self.path is not None:
            (self.path / f"policy-{snapshot.namespace}-{snapshot.seq:016d}.npz").unlink(missing_ok=True)
        if snapshot.weights is not None:
            snapshot.weights.unlink(missing_ok=True)

    def unusable(self) -> list[Path]:
        """Return the files that no opening could use: damaged ones, and what a death in the middle of writing has left."""
        if self.path is None:
            return []
        left = [file for file in self.path.glob("*.part") if file.stat().st_mtime < time.time() - _WRITING]
        return left + [file for file in self.path.glob("policy-*.npz") if self._read(file) is None]

    @staticmethod
    def _read(file: Path) -> tuple[dict[str, Any], dict[str, Floats]] | None:
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
                manifest = json.loads(arrays[_MANIFEST].tobytes())
                state = {name: arrays[name] for name in arrays.files if name != _MANIFEST}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            _log.warning("snapshot %s is unreadable (%s); taking an older one", file, error)
            return None
        return manifest, state

    def drop(self, namespace: int) -> None:
        """Delete the snapshots of a namespace: they know what must be forgotten."""
        for file in [*self._files(namespace), *self._weights(namespace)]:
            file.unlink(missing_ok=True)

    def _weights(self, namespace: int) -> list[Path]:
        return [] if self.path is None else list(self.path.glob(f"encoder-{namespace}-*.safetensors"))

    def _files(self, namespace: int) -> list[Path]:
        """Return the files of a namespace, newest first."""
        return [] if self.path is None else sorted(self.path.glob(f"policy-{namespace}-*.npz"), reverse=True)
