"""A cache of outcomes: in a deterministic environment, the same case on the same task always has the same outcome."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cascade_memory import Trajectory
from cascade_memory.domain import connect


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether an attempt succeeded, and what was done (None: nothing)."""

    success: bool
    done: Trajectory | None


class Outcomes:
    """A file that maps everything an outcome depends on to the outcome; any number of processes may share it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcomes = Outcomes(Path(folder) / "outcomes.sqlite")
    ...     outcomes.keep(["game 1", "some case"], Outcome(True, None))
    ...     found, missing = outcomes.known(["game 1", "some case"]), outcomes.known(["game 2", "some case"])
    ...     outcomes.close()
    >>> found, missing
    (Outcome(success=True, done=None), None)
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = connect(path, timeout=60.0, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")  # outcomes lost in a power failure are played again
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS outcomes (key BLOB PRIMARY KEY, success INTEGER, done BLOB) WITHOUT ROWID"
        )

    def known(self, depends_on: Sequence[str]) -> Outcome | None:
        """Return the outcome if it is in the cache."""
        row = self._file.execute("SELECT success, done FROM outcomes WHERE key = ?", (_key(depends_on),)).fetchone()
        if row is None:
            return None
        return Outcome(bool(row[0]), Trajectory.from_json(zlib.decompress(row[1]).decode()) if row[1] else None)

    def keep(self, depends_on: Sequence[str], outcome: Outcome) -> None:
        """Store an outcome, unless there is one already."""
        done = zlib.compress(outcome.done.to_json().encode()) if outcome.done else None
        self._file.execute("INSERT OR IGNORE INTO outcomes VALUES (?, ?, ?)", (_key(depends_on), outcome.success, done))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _key(depends_on: Sequence[str]) -> bytes:
    return hashlib.sha256(json.dumps(list(depends_on)).encode()).digest()[:16]
