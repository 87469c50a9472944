"""A folder of snapshots of learned state. Files in it that have other names are not read, copied or deleted."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from cascade_memory.domain.private_files import is_plain, make_folder, make_private, open_plain, open_private
from cascade_memory.errors import StoreUnwritable
from cascade_memory.ports.snapshots import Snapshot
from cascade_memory.redaction.saying import log_of
from cascade_memory.snapshots.format import read_arrays, read_snapshot, write_snapshot

_KEEP = 2
_STATE = re.compile(r"policy-(0|[1-9]\d{0,17})-(\d{16})\.npz", re.ASCII)
_WEIGHTS = re.compile(r"encoder-(0|[1-9]\d{0,17})-(\d{16})-[0-9a-f]{8}\.safetensors", re.ASCII)
_UNFINISHED = re.compile(r"(policy-\d+-\d{16}|encoder-\d+-\d{16}-[0-9a-f]{8})\.\d+\.part", re.ASCII)
_WRITING = 60.0  # seconds that writing a file may take; younger files may be unfinished
_log = log_of(__name__)


class SnapshotStore:
    """A folder of snapshots. With ``path=None``, for a memory in RAM, nothing is written.

    Snapshots may come from elsewhere, with a backup. A file that cannot be read, or does not match its name, is ignored.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None and not path.is_symlink():
            for file in (path, *files_in(path)):
                make_private(file)  # an earlier version let anybody read them

    def save(self, snapshot: Snapshot, write_weights: Callable[[Path], None] | None = None) -> None:
        """Write a snapshot, and delete old ones. It is synced to disk under a temporary name and then renamed.

        The encoder's weights are written first, so that a snapshot never names weights that do not exist.
        """
        if self.path is None:
            return
        nonce = uuid.uuid4().hex[:8]  # another process may be writing weights for the same log entry
        weights = self.path / weights_name(snapshot.namespace, snapshot.seq, nonce)
        target = self.path / state_name(snapshot.namespace, snapshot.seq)
        unfinished = target.with_suffix(f".{uuid.uuid4().int}.part")  # a name that nobody else has: see below
        name = str(unfinished)
        try:
            make_folder(self.path)
            if write_weights is not None:
                write_weights(weights)
                make_private(weights)
            with open_private(unfinished, "xb") as file:  # a link may lie there
                write_snapshot(file, snapshot, None if write_weights is None else weights.name)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        except OSError as error:
            raise StoreUnwritable(f"cannot write {target}: {error}") from error
        finally:
            try:  # noqa: SIM105 - the first call is made whatever interrupts come, and it runs no Python: not even a path's
                os.unlink(name)
            except OSError:
                pass
        for old in self._files(snapshot.namespace)[_KEEP:]:
            _delete(old)
        for old in self._unnamed(snapshot.namespace):  # weights that none of the remaining snapshots names
            _delete(old)

    def _unnamed(self, namespace: int) -> list[Path]:
        """List the weights that no snapshot names, except those that another process may be about to name."""
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

    def latest(self, namespace: int, *, policy: str, encoder: str, until: int, after: int = -1) -> Snapshot | None:
        """Return the newest readable snapshot of this policy and encoder after log entry ``after`` up to ``until``, or None."""
        for file in self._files(namespace):
            # A later one learned from log entries that do not exist here: somebody has restored an old copy of the ledger.
            if not after < (of_state(file.name) or (0, 0))[1] <= until:
                continue
            found = self.read(file)
            if found is not None and (found.policy, found.encoder) == (policy, encoder):
                return found
        return None

    def every(self) -> Iterator[Snapshot]:
        """Yield all readable snapshots, the oldest of each namespace first."""
        for file in sorted(file for file in self._all() if of_state(file.name)):
            if (found := self.read(file)) is not None:
                yield found

    def remove(self, snapshot: Snapshot) -> None:
        """Delete an unusable snapshot and its weights. Only files of this folder with the names of snapshots are deleted."""
        if self.path is None:
            return
        _delete(self.path / state_name(snapshot.namespace, snapshot.seq))
        if snapshot.weights is not None and of_weights(snapshot.weights.name) == (snapshot.namespace, snapshot.seq):
            _delete(self.path / snapshot.weights.name)

    def unusable(self) -> int:
        """Count the files that cannot be used: damaged ones, and those left by a process that died while writing."""
        return len(self._unusable())

    def remove_unusable(self) -> None:
        """Delete the files that cannot be used."""
        for file in self._unusable():
            file.unlink(missing_ok=True)

    def _unusable(self) -> list[Path]:
        if self.path is None:
            return []
        files = files_in(self.path)
        left = [file for file in files if is_unfinished(file.name) and _written(file) < time.time() - _WRITING]
        return left + [file for file in files if of_state(file.name) and self.read(file) is None]

    @staticmethod
    def read(file: Path) -> Snapshot | None:
        """Read a snapshot; log a warning and return None if the file is not a valid one."""
        try:
            found, weights = read_snapshot(read_arrays(file), whose := of_state(file.name))
            if weights is None:
                return found
            if whose is None or not _is_ours(file, weights, whose):
                raise ValueError(f"it names {weights!r}, which is not a file with its weights")  # noqa: TRY301 - as below
            return replace(found, weights=file.parent / weights)
        except Exception as error:  # noqa: BLE001 - zip, numpy and JSON readers can raise anything on damaged bytes
            _log.warning("snapshot %s is unreadable (%s); trying an older one", file, error)
            return None

    def drop(self, namespace: int) -> None:
        """Delete the snapshots of a namespace: they contain what must be forgotten."""
        for file in [*self._files(namespace), *self._weights(namespace)]:
            file.unlink(missing_ok=True)  # the caller must know if this fails, so errors are raised

    def _all(self, begins: str = "") -> list[Path]:
        return [] if self.path is None else files_in(self.path, begins)

    def _weights(self, namespace: int) -> list[Path]:
        return [file for file in self._all(f"encoder-{namespace}-") if (of_weights(file.name) or (0, 0))[0] == namespace]

    def _files(self, namespace: int) -> list[Path]:
        """List the files with the state of a namespace, newest first."""
        files = self._all(f"policy-{namespace}-")
        return sorted((file for file in files if (of_state(file.name) or (0, 0))[0] == namespace), reverse=True)


def _is_ours(file: Path, weights: object, whose: tuple[int, int]) -> bool:
    return isinstance(weights, str) and of_weights(weights) == whose and is_plain(file.parent / weights)


def _delete(file: Path) -> None:
    """Delete a file if that is possible; a file that stays does no harm."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def _written(file: Path) -> float:
    """Return when a file was written, or the present time if another process has just deleted it."""
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()


def state_name(namespace: int, seq: int) -> str:
    """Name the file with the policy's state after an entry of the log.

    >>> state_name(1, 7)
    'policy-1-0000000000000007.npz'
    """
    return f"policy-{namespace}-{seq:016d}.npz"


def weights_name(namespace: int, seq: int, nonce: str) -> str:
    """Name the file with an encoder's weights."""
    return f"encoder-{namespace}-{seq:016d}-{nonce}.safetensors"


def of_state(name: str) -> tuple[int, int] | None:
    """Parse the name of a state file to (namespace, entry of the log); None for any other name.

    >>> of_state("policy-1-0000000000000007.npz"), of_state("../policy-1-0000000000000007.npz")
    ((1, 7), None)
    """
    return _numbers(_STATE, name)


def of_weights(name: str) -> tuple[int, int] | None:
    """Parse the name of a weights file to (namespace, entry of the log); None for any other name."""
    return _numbers(_WEIGHTS, name)


def is_unfinished(name: str) -> bool:
    """Say whether this is the name of an unfinished file."""
    return _UNFINISHED.fullmatch(name) is not None


def _numbers(pattern: re.Pattern[str], name: str) -> tuple[int, int] | None:
    found = pattern.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def files_in(folder: Path, begins: str = "") -> list[Path]:
    """List the plain files in a folder whose names start with ``begins``; none if the folder does not exist or is a link."""
    try:
        names = [] if folder.is_symlink() else [name for name in os.listdir(folder) if name.startswith(begins)]
        return [folder / name for name in names if is_plain(folder / name)]
    except OSError:
        return []


def copy_snapshots(source: Path, target: Path) -> None:
    """Copy the snapshots of a folder into a new one: only plain files with names of snapshots, and no links."""
    wanted = [file for file in files_in(source) if of_state(file.name) or of_weights(file.name)]
    if not wanted:
        return
    make_folder(target)
    for file in wanted:
        try:
            opened = open_plain(file)
        except FileNotFoundError:
            continue  # it was just deleted, since a newer snapshot replaced it
        with opened, open_private(target / file.name, "xb") as copy:
            shutil.copyfileobj(opened, copy, 2**20)
