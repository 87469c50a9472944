"""The core of the ledger and its facts, the same for each kind of database. Other files have the ledger's other parts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.digests import Signed
from cascade_memory.domain.records import Change
from cascade_memory.errors import StoreBusy
from cascade_memory.ledger import numbering, redeeming, running
from cascade_memory.ledger.actions import SQLActions
from cascade_memory.ledger.archive import SQLArchive
from cascade_memory.ledger.case_states import AUTHOR
from cascade_memory.ledger.cases import SQLCases
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.episodes import SQLEpisodes
from cascade_memory.ledger.expiry import SQLExpiry
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.filters import compile_where
from cascade_memory.ledger.forgetting import SQLForgetting
from cascade_memory.ledger.insight import SQLInsight
from cascade_memory.ledger.lessons import SQLLessons
from cascade_memory.ledger.maintenance import SQLMaintenance
from cascade_memory.ledger.outcomes import Settling
from cascade_memory.ledger.provenance import SQLProvenance
from cascade_memory.ledger.recalls import Recalling
from cascade_memory.ledger.rows import KEYS, SET_FACT, fetched, fetched_for, with_vectors
from cascade_memory.ledger.viewing import SQLViewing
from cascade_memory.ports.encoders import Candidates

_TEXT_CHARS = 2_000  # characters of a query that are used for comparing words
_SCANNED = (int, int, str, str, bytes)  # the types of the columns that scan reads; an edited row may hold anything


class Ledger(Recalling, Settling):
    """Records recalls, settles episodes, and lets others read its log by ``tail``. Safe for many threads and processes.

    The parts for everything else are its attributes. If a method returns, its change is stored; if it raises, nothing was
    changed. Three terms occur in all parts. A *key* is the number of a row; keys ascend with age and are never reused. An *id*
    is a text that the library generates, and that an export keeps. A *durable* write survives a power cut; every other
    acknowledged write survives at least the death of the process.
    """

    lessons: SQLLessons  # these three depend on the kind of database
    maintenance: SQLMaintenance
    archive: SQLArchive

    def __init__(self, connections: Database, path: Path | None) -> None:
        self.connections, self.path = connections, path  # ``path``: of its file, if it has one
        self.check = connections.belonging.check  # every write calls this before it is acknowledged
        self.facts = SQLFacts(connections)
        self.cases = SQLCases(connections)
        self.episodes = SQLEpisodes(connections)
        self.forgetting = SQLForgetting(connections)
        self.expiry = SQLExpiry(connections)
        self.insight = SQLInsight(connections)
        self.viewing = SQLViewing(connections)
        self.actions = SQLActions(connections)
        self.provenance = SQLProvenance(connections)

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written at the moment; None if writing is possible."""
        return self.connections.read_only

    def bind(self, embedder: str) -> None:
        """Declare the embedder of the folder's vectors: its identity and its dimension, as JSON.

        This text is the fact ``embedder`` in ``facts``. The first write of a recall, an outcome or a case stores that fact if
        it is missing. If the fact names another embedder, every write raises ``EncoderMismatch`` and stores nothing.
        """
        with self.connections.read() as connection:
            self.connections.belonging.bind(connection, embedder)

    def close(self) -> None:
        """Release the ledger. Every later call raises ``StoreError``; closing again does nothing."""
        self.connections.close()

    def namespace(self, name: str, *, create: bool) -> int | None:
        """Return the id of a namespace, which never changes (the first one is 1); create a missing one, or return None."""
        with self.connections.read() as connection:
            number = numbering.number_of(connection, name)
        if number is not None or not create:
            return number
        try:
            with self.connections.write(durable=False) as connection:
                return numbering.create(connection, name)
        except StoreBusy:
            # If many first recalls come at once, one of them writes the namespace. The others can then read it.
            with self.connections.read() as connection:
                number = numbering.number_of(connection, name)
            if number is None:
                raise
            return number

    def namespaces(self) -> dict[str, int]:
        """Return the id of each namespace, by the namespace's name."""
        with self.connections.read() as connection:
            return dict(connection.execute("SELECT name, id FROM namespace ORDER BY name").fetchall())

    # -- the log -----------------------------------------------------------------------------------------------------

    def head(self) -> int:
        """Return the number of the last log line; 0 if there is none."""
        with self.connections.read() as connection:
            return int(connection.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()[0])

    def tail(self, after: int, limit: int = 10_000, namespace: int | None = None) -> list[Change]:
        """Return the changes after a log line, oldest first: those of all namespaces, or of one.

        A reader that goes on after the last change it has read misses no acknowledged change.
        """
        where, values = ("", ()) if namespace is None else ("AND namespace = ?", (namespace,))
        query = f"SELECT seq, namespace, kind, ref, id FROM change WHERE seq > ? {where} ORDER BY seq LIMIT ?"
        with self.connections.read() as connection:
            rows = connection.execute(query, (after, *values, limit)).fetchall()
        return [Change(*row) for row in rows]

    # -- recall ------------------------------------------------------------------------------------------------------

    def scan(self, namespace: int, after: int, limit: int, until: int | None = None) -> Candidates:
        """Return up to ``limit`` cases with keys after ``after`` and up to ``until``, with their vectors, in order of age.

        Unusable cases are left out. The result is empty only if no cases follow.
        """
        with self.connections.read() as connection:
            query = f"""SELECT cases.key, cases.solution, substr(cases.query, 1, {_TEXT_CHARS}), cases.head, case_vector.vector
                        FROM cases JOIN case_vector ON case_vector.key = cases.key
                        WHERE cases.namespace = ? AND cases.key > ? AND case_vector.key > ? AND cases.key <= ?
                          AND cases.hidden = 0
                        ORDER BY cases.key LIMIT ?"""
            while True:
                read = fetched(connection, query, (namespace, after, after, until if until is not None else 2**62, limit))
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
            query = "SELECT key FROM cases WHERE namespace = ? AND hidden = 0 ORDER BY key DESC LIMIT ?"
            keys = [key for (key,) in connection.execute(query, (namespace, limit))]
        return np.array(keys[::-1], np.int64)

    def filtered(self, namespace: int, where: object) -> NDArray[np.int64]:
        """Return the keys of all cases whose metadata match a filter, ascending; raise ``InvalidInput`` if it is invalid."""
        with self.connections.read() as connection:
            query, values = compile_where(where, namespace)
            # The database joins the keys into one text: Python tuples of ten thousand rows take longer than finding the rows.
            (joined,) = connection.execute(f"SELECT group_concat(key) FROM ({query}) AS found", values).fetchone()
            return np.array([], np.int64) if joined is None else np.fromstring(joined, np.int64, sep=",")

    def trusted(self, namespace: int, min_trust: int) -> NDArray[np.int64]:
        """Return the keys of all cases that may be shown and have at least the trust ``min_trust``, ascending."""
        with self.connections.read() as connection:
            query = "SELECT key FROM cases WHERE namespace = ? AND hidden = 0 AND trust >= ? ORDER BY key"
            (joined,) = connection.execute(
                f"SELECT group_concat(key) FROM ({query}) AS found", (namespace, min_trust)
            ).fetchone()
            return np.array([], np.int64) if joined is None else np.fromstring(joined, np.int64, sep=",")

    def candidates(
        self, keys: NDArray[np.int64], verified_after: float = 0.0, min_trust: int = 0
    ) -> dict[int, tuple[str, str, int, str, str | None]]:
        """Return (text, beginning of the solution, group, id, author) by key, for the cases that a recall may choose from.

        Cases whose solutions agree have the same group. Left out are deleted and hidden cases, cases that are trusted less than
        ``min_trust``, and cases last verified before ``verified_after``, unless they are pinned. The author of a person's case
        is None, because no actor's record matters for it.
        """
        with self.connections.read() as connection:
            query = f"""SELECT key, substr(query, 1, {_TEXT_CHARS}), head, solution, id, {AUTHOR} FROM cases
                        WHERE key IN ({KEYS}) AND hidden = 0 AND (verified_at >= ? OR pinned = 1)"""
            values: list[float] = [verified_after]
            if min_trust:
                query, values = f"{query} AND trust >= ?", [verified_after, min_trust]
            rows = fetched_for(connection, query, keys.tolist(), *values)
        found: dict[int, tuple[str, str, int, str, str | None]] = {}
        for key, text, head, group, case_id, author in rows:  # an edited row may hold anything
            if type(text) is str and type(head) is str and type(group) is int and type(case_id) is str:
                found[key] = (text, head, group, case_id, author)
        return found


class SQLFacts:
    """Stores facts about the folder: texts by name."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def get(self, name: str) -> str | None:
        """Return a fact; None if it was never stored, and an empty text if it cannot be read."""
        with self._connections.read() as connection:
            return fact(connection, name)

    def names(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin with this prefix."""
        with self._connections.read() as connection:
            rows = connection.execute("SELECT key FROM meta WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)).fetchall()
        return [str(key) for (key,) in rows]

    def set(self, name: str, value: str) -> None:
        """Store a fact, durably; this replaces its earlier value."""
        with self._connections.write(durable=True) as connection:
            connection.execute(SET_FACT, (name, value))

    def key(self) -> str:
        """Return this ledger's secret key for signing; the first call makes it. All processes share it, but no copy has it."""
        with self._connections.read() as connection:
            found = redeeming.key(connection)
        if found is None:
            with self._connections.write(durable=True) as connection:
                found = redeeming.make_key(connection)
        return found

    def running(self) -> float:
        """Return the running time in seconds; if it was not recorded since the boot, record it, so that it goes on from now."""
        with self._connections.read() as connection:
            if running.is_noted(connection):
                return running.seen(connection)
        with self._connections.write(durable=False) as connection:
            return running.now(connection)

    def redeem(self, token: Signed, what: str, *, named: str) -> bool:
        """Record, durably, that a token (such as a ticket) was redeemed for ``what``; ``named`` names the token in messages.

        Return False if the token was redeemed for the same thing before. Raise ``TicketRefused`` if it was redeemed for
        something else, or if it has expired.
        """
        with self._connections.write(durable=True) as connection:
            return redeeming.redeem(connection, token, what, named=named, wall=time.time())

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record that something was done, for example a training. People and replays read this; a recall never does."""
        with self._connections.write(durable=False) as connection:
            connection.execute(
                "INSERT INTO event (at, namespace, kind, payload) VALUES (?, ?, ?, ?)",
                (time.time(), namespace, kind, json.dumps(payload)),
            )
