"""The class that the rest of the library uses as the ledger: its core and the facts. Other files have the other parts."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Change
from cascade_memory.errors import StoreBusy
from cascade_memory.ledger.archive import SQLiteArchive
from cascade_memory.ledger.cases import SQLiteCases
from cascade_memory.ledger.connections import Connections
from cascade_memory.ledger.episodes import SQLiteEpisodes
from cascade_memory.ledger.expiry import SQLiteExpiry
from cascade_memory.ledger.filters import compile_where
from cascade_memory.ledger.forgetting import SQLiteForgetting
from cascade_memory.ledger.insight import SQLiteInsight
from cascade_memory.ledger.lessons import SQLiteLessons
from cascade_memory.ledger.maintenance import SQLiteMaintenance
from cascade_memory.ledger.outcomes import Settling
from cascade_memory.ledger.recalls import Recalling
from cascade_memory.ledger.rows import KEYS, fetched, fetched_for, with_vectors
from cascade_memory.ports.pair_encoder import Candidates

_TEXT_CHARS = 2_000  # characters of a query that are used for comparing words
_SCANNED = (int, int, str, str, bytes)  # the types of the columns that scan reads; an edited row may hold anything


class SQLiteLedger(Recalling, Settling):
    """Stores everything that was acknowledged in one SQLite file (or in RAM, with ``path=None``).

    A recall survives a killed process. An outcome, its case and everything else also survive a power cut.

    >>> ledger = SQLiteLedger(None)
    >>> ledger.namespace("default", create=True)
    1
    >>> ledger.insight.counts(1)["cases"]
    0
    """

    def __init__(self, path: Path | None) -> None:
        path = None if path is None else Path(os.path.abspath(path))  # absolute: the working directory may change
        self.path = path
        self.connections = Connections(path)
        self.check = self.connections.belonging.check  # every write calls this before it is acknowledged
        self.facts = SQLiteFacts(self.connections)
        self.cases = SQLiteCases(self.connections)
        self.episodes = SQLiteEpisodes(self.connections)
        self.lessons = SQLiteLessons(self.connections)
        self.forgetting = SQLiteForgetting(self.connections)
        self.expiry = SQLiteExpiry(self.connections)
        self.insight = SQLiteInsight(self.connections)
        self.maintenance = SQLiteMaintenance(self.connections)
        self.archive = SQLiteArchive(self.connections)

    def bind(self, embedder: str) -> None:
        """Refuse every later write if the folder has vectors of another embedder; the first write records the embedder."""
        with self.connections.read() as connection:
            self.connections.belonging.bind(connection, embedder)

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written at the moment; None if writing is possible."""
        return self.connections.read_only

    def close(self) -> None:
        """Close the file."""
        self.connections.close()

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the number of a namespace; if it does not exist, create it (with ``create``) or return None."""
        with self.connections.read() as connection:
            number = _number_of(connection, name)
        if number is not None or not create:
            return number
        try:
            with self.connections.write(durable=False) as connection:
                connection.execute("INSERT OR IGNORE INTO namespace (name) VALUES (?)", (name,))
                return _number_of(connection, name)
        except StoreBusy:
            # If many first recalls come at once, one of them writes the namespace. The others can then read it.
            with self.connections.read() as connection:
                number = _number_of(connection, name)
            if number is None:
                raise
            return number

    def namespaces(self) -> dict[str, int]:
        """Return the number of each namespace, by name."""
        with self.connections.read() as connection:
            return dict(connection.execute("SELECT name, id FROM namespace ORDER BY name").fetchall())

    # -- the log -----------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """Return the number of the last line of the log."""
        with self.connections.read() as connection:
            return int(connection.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()[0])

    def tail(self, after: int, limit: int = 10_000) -> list[Change]:
        """Return up to ``limit`` lines of the log after a given line, oldest first."""
        with self.connections.read() as connection:
            rows = connection.execute(
                "SELECT seq, namespace, kind, ref, id FROM change WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
            ).fetchall()
        return [Change(*row) for row in rows]

    # -- recall ------------------------------------------------------------------------------------------------------

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return up to ``limit`` cases with their vectors, oldest first, with keys after ``after`` and up to ``until``."""
        with self.connections.read() as connection:
            query = f"""SELECT cases.key, cases.solution, substr(cases.query, 1, {_TEXT_CHARS}), cases.head, case_vector.vector
                        FROM cases JOIN case_vector ON case_vector.key = cases.key
                        WHERE cases.namespace = ? AND cases.key > ? AND cases.key <= ? ORDER BY cases.key LIMIT ?"""
            while True:
                read = fetched(connection, query, (namespace, after, until if until is not None else 2**62, limit))
                rows, vectors = with_vectors([row for row in read if tuple(map(type, row)) == _SCANNED])
                if rows or len(read) < limit:
                    break
                after = read[-1][0]  # no row of this batch can be used: go on with the next batch
            return Candidates(
                keys=np.array([row[0] for row in rows], np.int64),
                groups=np.array([row[1] for row in rows], np.int64),
                texts=[row[2] for row in rows],
                heads=[row[3] for row in rows],
                vectors=vectors,
            )

    def newest(self, namespace: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the newest cases, ascending."""
        with self.connections.read() as connection:
            query = "SELECT key FROM cases WHERE namespace = ? ORDER BY key DESC LIMIT ?"
            keys = [key for (key,) in connection.execute(query, (namespace, limit))]
        return np.array(keys[::-1], np.int64)

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases that match a filter, ascending."""
        with self.connections.read() as connection:
            query, values = compile_where(where, namespace)
            # SQLite joins the keys into one text: Python tuples of ten thousand rows would take longer than finding the rows.
            (joined,) = connection.execute(f"SELECT group_concat(key) FROM ({query})", values).fetchone()
            return np.array([], np.int64) if joined is None else np.fromstring(joined, np.int64, sep=",")

    def candidates(self, keys: NDArray[np.int64], verified_after: float = 0.0) -> dict[int, tuple[str, str, int, str]]:
        """Return (text, head, group, id) by key: what a ranker needs for its choice, without solutions and vectors."""
        with self.connections.read() as connection:
            query = f"""SELECT key, substr(query, 1, {_TEXT_CHARS}), head, solution, id FROM cases
                        WHERE key IN ({KEYS}) AND verified_at >= ?"""
            rows = fetched_for(connection, query, keys.tolist(), verified_after)
        found: dict[int, tuple[str, str, int, str]] = {}
        for key, text, head, group, case_id in rows:  # an edited row may hold anything
            if type(text) is str and type(head) is str and type(group) is int and type(case_id) is str:
                found[key] = (text, head, group, case_id)
        return found


class SQLiteFacts:
    """Stores facts about the folder: texts by name."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, name: str) -> str | None:
        """Return a fact; None if it was never stored."""
        with self._connections.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with ``prefix``."""
        with self._connections.read() as connection:
            rows = connection.execute("SELECT key FROM meta WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)).fetchall()
        return [str(key) for (key,) in rows]

    def set(self, name: str, value: str) -> None:
        """Store a fact, durably."""
        with self._connections.write(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record that something was done, for example a training. People and replays read this; a recall never does."""
        with self._connections.write(durable=False) as connection:
            connection.execute(
                "INSERT INTO event (at, namespace, kind, payload) VALUES (?, ?, ?, ?)",
                (time.time(), namespace, kind, json.dumps(payload)),
            )


def _number_of(connection: sqlite3.Connection, namespace: str) -> int | None:
    row = connection.execute("SELECT id FROM namespace WHERE name = ?", (namespace,)).fetchone()
    return None if row is None else int(row[0])
