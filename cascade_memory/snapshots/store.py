"""Writing and reading snapshots of learned state."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from cascade_memory.domain.private_files import is_plain, make_folder, make_private, open_private
from cascade_memory.errors import StoreUnwritable
from cascade_memory.ports.policy import Floats
from cascade_memory.snapshots.arrays import digest, read_arrays, write_arrays
from cascade_memory.snapshots.names import files_in, is_unfinished, of_state, of_weights, state_name, weights_name

_KEEP = 2
_WRITING = 60.0  # seconds that writing one may take
_MANIFEST = "manifest"
_MOST_CHARS = 1_000  # of the name of a policy or an encoder
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
    """A folder of snapshots. ``path=None`` keeps none: a memory in RAM has nothing to come back to.

    Snapshots may have come from elsewhere, with a backup. What cannot be read, or does not say what its name says, is none.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None and not path.is_symlink():
            for file in (path, *files_in(path)):
                make_private(file)  # an earlier version left them to be read by anybody

    def save(self, snapshot: Snapshot, write_weights: Callable[[Path], None] | None = None) -> None:
        """Write a snapshot: under another name first, on disk before it gets its own. Older ones beyond the last go.

        The encoder's weights come first: a snapshot that names them has them.
        """
        if self.path is None:
            return
        nonce = uuid.uuid4().hex[:8]  # another process may be writing weights of its own for the same line
        weights = self.path / weights_name(snapshot.namespace, snapshot.seq, nonce)
        manifest = {
            "namespace": snapshot.namespace,
            "seq": snapshot.seq,
            "known": snapshot.known,
            "policy": snapshot.policy,
            "encoder": snapshot.encoder,
            "weights": None if write_weights is None else weights.name,
            "digest": digest(snapshot.state),
        }
        target = self.path / state_name(snapshot.namespace, snapshot.seq)
        unfinished = target.with_suffix(f".{os.getpid()}.part")  # another process may be writing the same
        try:
            make_folder(self.path)
            if write_weights is not None:
                write_weights(weights)
                make_private(weights)
            with open_private(unfinished, "wb") as file:
                text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
                write_arrays(file, {_MANIFEST: cast("Any", text), **snapshot.state})
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise StoreUnwritable(f"cannot write {target}: {error}") from error
        for old in self._files(snapshot.namespace)[_KEEP:]:
            _delete(old)
        for old in self._unnamed(snapshot.namespace):  # by those that are left
            _delete(old)

    def _unnamed(self, namespace: int) -> list[Path]:
        """Return weights that no snapshot names, but for those that another process may be about to name."""
        files = self._weights(namespace)
        if not files:
            return []
        found = [read for file in self._files(namespace) if (read := self.read(file)) is not None]
        named = {snapshot.weights.name for snapshot in found if snapshot.weights is not None}
        oldest = min((snapshot.seq for snapshot in found), default=0)
        young = time.time() - _WRITING
        return [
            file
            for file in files
            if file.name not in named and ((of_weights(file.name) or (0, 0))[1] < oldest or _written(file) < young)
        ]

    def latest(self, namespace: int, *, policy: str, encoder: str, until: int) -> Snapshot | None:
        """Return the newest readable snapshot of this policy on this encoder, not newer than a line of the log, or None."""
        for file in self._files(namespace):
            # A later one was learned from another ledger: somebody has put back an old copy of this one.
            if (of_state(file.name) or (0, 0))[1] > until:
                continue
            found = self.read(file)
            if found is not None and (found.policy, found.encoder) == (policy, encoder):
                return found
        return None

    def remove(self, snapshot: Snapshot) -> None:
        """Delete a snapshot that nobody can use; nothing but files of this folder under names of ours, whatever it says."""
        if self.path is None:
            return
        _delete(self.path / state_name(snapshot.namespace, snapshot.seq))
        if snapshot.weights is not None and of_weights(snapshot.weights.name) == (snapshot.namespace, snapshot.seq):
            _delete(self.path / snapshot.weights.name)

    def unusable(self) -> list[Path]:
        """Return the files that no opening could use: damaged ones, and what a death in the middle of writing has left."""
        if self.path is None:
            return []
        files = files_in(self.path)
        left = [file for file in files if is_unfinished(file.name) and _written(file) < time.time() - _WRITING]
        return left + [file for file in files if of_state(file.name) and self.read(file) is None]

    @staticmethod
    def read(file: Path) -> Snapshot | None:
        """Return what a file holds; None, and a line in the log, where that is no snapshot of ours."""
        try:
            arrays = read_arrays(file)
            manifest = json.loads(arrays.pop(_MANIFEST).tobytes())
            return _checked(file, manifest, arrays)
        except Exception as error:  # noqa: BLE001 - zip, numpy's header and JSON fail in any way on bytes that were not meant
            _log.warning("snapshot %s is unreadable (%s); taking an older one", file, error)
            return None

    def drop(self, namespace: int) -> None:
        """Delete the snapshots of a namespace: they know what must be forgotten."""
        for file in [*self._files(namespace), *self._weights(namespace)]:
            file.unlink(missing_ok=True)  # who asked must hear of it where that cannot be done

    def _all(self) -> list[Path]:
        return [] if self.path is None else files_in(self.path)

    def _weights(self, namespace: int) -> list[Path]:
        return [file for file in self._all() if (of_weights(file.name) or (0, 0))[0] == namespace]

    def _files(self, namespace: int) -> list[Path]:
        """Return the files of a namespace, newest first."""
        return sorted((file for file in self._all() if (of_state(file.name) or (0, 0))[0] == namespace), reverse=True)


def _checked(file: Path, manifest: Any, state: dict[str, Floats]) -> Snapshot:
    """Return a snapshot if its manifest is one, and is that of this file."""
    namespace, seq, known = manifest["namespace"], manifest["seq"], manifest.get("known", 0)
    if any(type(number) is not int for number in (namespace, seq, known)) or (namespace, seq) != of_state(file.name):
        raise ValueError("its manifest is that of another file")
    policy, encoder, weights = manifest["policy"], manifest["encoder"], manifest.get("weights")
    if not all(isinstance(text, str) and len(text) <= _MOST_CHARS for text in (policy, encoder)) or known < 0:
        raise ValueError("its manifest says nothing that can be used")
    # Those of before there were digests have none: what they say is still checked when it is taken over.
    if "digest" in manifest and manifest["digest"] != digest(state):
        raise ValueError("its content has changed since it was written")
    if weights is not None and not _is_ours(file, weights, (namespace, seq)):
        raise ValueError(f"it names {weights!r}, which are no weights of its own")
    return Snapshot(
        namespace=namespace,
        seq=seq,
        known=known,
        policy=policy,
        encoder=encoder,
        state=state,
        weights=None if weights is None else file.parent / weights,
    )


def _is_ours(file: Path, weights: object, whose: tuple[int, int]) -> bool:
    return isinstance(weights, str) and of_weights(weights) == whose and is_plain(file.parent / weights)


def _delete(file: Path) -> None:
    """Delete a file, if it can be: what stays is not taken for more than it is."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def _written(file: Path) -> float:
    """Return when a file was written; now, where another process has just deleted it."""
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()
